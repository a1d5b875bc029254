"""Training: the Prefect flow that builds the records, recipes, cost, and the trainer (``flows.train``)."""
