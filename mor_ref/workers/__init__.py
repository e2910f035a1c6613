"""Workers: processes and machines that share a large piece of work."""
