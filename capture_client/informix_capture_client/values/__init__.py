"""From payloads to columns: what each Informix type becomes in Arrow."""
