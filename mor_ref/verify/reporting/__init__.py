"""Reports: text, JSON, JUnit and HTML."""
