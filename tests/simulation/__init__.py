"""Jobs in virtual time: real supervisors of all agents, a network that fails, workers that are told what to do.

    python -m tests.simulation [LIVES [FIRST_SEED]]      many lives, each from a seed; prints the seeds of those that broke a law
    python -m tests.simulation --seed SEED               one life, told event by event
"""
