"""Quality gates: named checks after each stage, with a kept history, that warn or hold a run.

``measures`` counts what a stage left, ``judging`` compares it with limits and the last run and acts,
``decisions`` records what people decide, ``waiting`` suspends a Prefect run until they do.
"""
