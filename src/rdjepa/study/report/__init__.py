"""Tables, figures and the page of a study, from recorded rows alone; never imports torch."""
