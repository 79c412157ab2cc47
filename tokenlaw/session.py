"""One contract of one target, inside the process that runs it."""

import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tokenlaw.accidents import is_implementations, undecided
from tokenlaw.checks import did_you_mean, load_suites, matching, require_contracts, require_match
from tokenlaw.errors import BadUse, LacksContract, described
from tokenlaw.properties.announcing import Keeper, Listener, listening
from tokenlaw.properties.running import PROFILES, Profile, Progress, Suite
from tokenlaw.properties.trace import TraceError
from tokenlaw.protocol import Request
from tokenlaw.spec.contracts import BLOCK_MANAGER, PAGED_ATTENTION, ContractError
from tokenlaw.spec.verdicts import Check, Evidence, Verdict
from tokenlaw.targets import build_once, resolve
from tokenlaw.text import encodable, one_line, shortened


class Session:
    """What a request asks for, with the target loaded and built once.

    Raises
    ------
    BadUse
        The request can't be fulfilled; the message says why.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._profile = profile_named(request.profile)
        suites = load_suites(request.registry)
        require_contracts(request.contracts or (), suites)
        require_match(suites, request.only)
        self._implementation = resolve(request.target)
        # Some packages' versions are subclasses of str.
        self.name, self.version = str(self._implementation.name), str(self._implementation.version)
        self.contracts = tuple(self._implementation.factories)
        require_contracts(self.contracts, suites)
        if request.replay is None:
            self.to_run = self._contracts_to_run(suites)
        else:
            self.to_run = (self._contract_of(request.replay, suites),)
        self.contract = request.contract or self.to_run[0]
        self._suite: Suite = suites[self.contract]
        selected = matching(self._suite, request.only)
        self.checks: tuple[Check, ...] = tuple(check for check in self._suite.checks if check.id in selected)
        self._built, capabilities = build_once(self._implementation, self.contract)
        self.capabilities = tuple(sorted(capabilities))
        self.seconds = request.limits.seconds(self._profile.seconds, len(self.checks))

    def _contracts_to_run(self, suites: Mapping[str, Suite]) -> tuple[str, ...]:
        wanted = self._request.contracts or tuple(suites)
        fulfilled = [contract for contract in wanted if contract in self.contracts]
        if not fulfilled:
            raise LacksContract(
                f"target {self.name!r} fulfils {_listed(self.contracts)}, not {_listed(wanted)}"
            )
        chosen = tuple(contract for contract in fulfilled if matching(suites[contract], self._request.only))
        if not chosen:
            raise LacksContract(
                f"--only {self._request.only!r} matches no check of {_listed(fulfilled)}, "
                f"which is what target {self.name!r} is audited for"
            )
        return chosen

    def _contract_of(self, data: Mapping[str, Any], suites: Mapping[str, Suite]) -> str:
        attention = str(data.get("schema")).startswith("tokenlaw.attention/")
        contract = PAGED_ATTENTION if attention else str(data.get("contract", BLOCK_MANAGER))
        source = self._request.replay_source
        if contract not in suites:
            raise BadUse(f"{source}: unknown contract {contract!r}; {did_you_mean(contract, suites)}")
        if contract not in self.contracts:
            raise LacksContract(
                f"{source} needs a {contract}; target {self.name!r} fulfils {_listed(self.contracts)}"
            )
        return contract

    def run(
        self, progress: Progress, before_run: Listener, keep: Keeper = lambda _: None
    ) -> Iterator[Evidence]:
        """Evidence for each check; what an exception of the implementation left undecided is ``unknown``.

        Parameters
        ----------
        progress : called now and then.
        before_run : called with every trace or case right before it is run.
        keep : called with what stands even if this process dies.

        Raises
        ------
        BadUse
            A factory returned the wrong thing, or the counterexample can't be run on this target.
        """
        request = self._request
        kept: dict[str, Evidence] = {}

        def keeper(found: Evidence) -> None:
            kept[found.check.id] = readable(found)
            keep(kept[found.check.id])

        with listening(before_run, keeper):
            try:
                yield from map(readable, self._evidence(progress))
            except ContractError as error:
                raise BadUse(one_line(str(error))) from error
            except TraceError as error:
                reason = one_line(str(error)).removeprefix("counterexample: ")
                raise BadUse(f"{request.replay_source}: {reason}") from error
            except BaseException as error:
                if not is_implementations(error, self._implementation, self._built):
                    raise
                cause = f"the implementation raised {described(error)}"
                message = encodable(shortened(f"{cause}\n{traceback.format_exc()}"))
                yield from undecided(self.checks, message, kept=kept, capabilities=self.capabilities)

    def _evidence(self, progress: Progress) -> list[Evidence]:
        request, suite = self._request, self._suite
        if request.replay is not None:
            return decided(suite.replay(self._implementation, request.replay))
        return suite.run(
            self._implementation,
            profile=self._profile,
            seed=request.seed,
            selected=frozenset(check.id for check in self.checks),
            progress=progress,
        )


def decided(evidence: list[Evidence]) -> list[Evidence]:
    """The evidence of a replay without what one trace can't exercise, unless that is all there is."""
    spoken = (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.HOLDS)
    return [row for row in evidence if row.verdict in spoken] or evidence


def profile_named(name: str) -> Profile:
    """The profile; raises `BadUse` if there is none of that name."""
    if name not in PROFILES:
        raise BadUse(f"unknown profile {name!r}; {did_you_mean(name, PROFILES)}")
    return PROFILES[name]


def readable(evidence: Evidence) -> Evidence:
    """The evidence with a message that can be stored, and that isn't too long for anybody to read."""
    return replace(evidence, message=encodable(shortened(evidence.message)))


def _listed(contracts: Iterable[str]) -> str:
    return ", ".join(contracts) or "nothing"
