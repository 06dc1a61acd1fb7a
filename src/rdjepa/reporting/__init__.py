"""Tables, figures and cards from result rows and arrays; never imports torch."""
