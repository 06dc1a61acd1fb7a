"""Pictures of fields and of training runs, drawn without touching the backend of whoever imports them."""
