"""The paper's studies: plans, cells, results and reports. Only the command line and the demonstration import it."""
