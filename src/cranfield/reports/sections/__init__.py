"""The sections of the page, one a file: each a function from results to a `Section`."""
