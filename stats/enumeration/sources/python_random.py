"""Placeholder until the lazy numbers are there."""
import random
from tokenlaw.stats.enumeration.choices import Draw

class PythonRandom:
    def __init__(self, tape): self.tape=tape
    def __enter__(self):
        self.saved=(random.choices, random.random)
        def choices(population, weights=None, k=1):
            t=sum(weights); return [population[self.tape.choose([w/t for w in weights], Draw("random.choices"))] for _ in range(k)]
        random.choices=choices
        class U:
            def __lt__(s,t): return self.tape.choose([t,1-t],Draw("u"))==0
        random.random=lambda: U()
    def __exit__(self,*e): random.choices,random.random=self.saved
