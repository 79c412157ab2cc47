"""One contract of one target, inside the process that runs it."""

import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tokenlaw.accidents import is_implementations, undecided
from tokenlaw.arguments import profile_named
from tokenlaw.checks import did_you_mean, load_suites, matching, require_contracts, require_match
from tokenlaw.deviations import evidence_of, require_known_checks, with_filed
from tokenlaw.earlier import require_continuable
from tokenlaw.errors import BadUse, LacksContract, described
from tokenlaw.protocol import Request
from tokenlaw.settings import require_usable_settings, require_used
from tokenlaw.spec.announcing import Keeper, Listener, listening
from tokenlaw.spec.contracts import BLOCK_MANAGER, PAGED_ATTENTION, ContractError
from tokenlaw.spec.suites import CounterexampleError, Progress, Settings, Suite
from tokenlaw.spec.verdicts import Check, Evidence, Verdict
from tokenlaw.targets import build_once, resolve
from tokenlaw.text import encodable, one_line, shortened

if TYPE_CHECKING:
    from tokenlaw.controls import Control


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
        require_usable_settings(request.settings)
        self._implementation = resolve(request.target)
        # Some packages' versions are subclasses of str.
        self.name, self.version = str(self._implementation.name), str(self._implementation.version)
        self.contracts = tuple(self._implementation.factories)
        require_contracts(self.contracts, suites)
        if request.replay is None:
            require_known_checks(self._implementation, suites)
            self._implementation = with_filed(
                self._implementation, request.target, request.deviations, suites
            )
            self.to_run = self._contracts_to_run(suites)
            require_used(request.given, self.to_run)
        else:
            self.to_run = (self._contract_of(request.replay, suites),)
        self._settings = self._with_earlier(request)
        self.contract = request.contract or self.to_run[0]
        self._suite: Suite = suites[self.contract]
        selected = matching(self._suite, request.only)
        self.checks: tuple[Check, ...] = tuple(check for check in self._suite.checks if check.id in selected)
        self._built, capabilities = build_once(self._implementation, self.contract)
        self.capabilities = tuple(sorted(capabilities))
        seconds = self._profile.seconds * max(1.0, (request.settings.budget or 0) / self._profile.requests)
        self.seconds = request.limits.seconds(seconds, len(self.checks))
        self.seed = request.seed
        self._found: list[Evidence] = []
        self._spent = 0.0

    def _with_earlier(self, request: Request) -> Settings:
        """The settings, with the evidence of an earlier report if there is one."""
        earlier = request.earlier
        if earlier is None:
            return request.settings
        require_continuable(
            earlier,
            name=self.name,
            version=self.version,
            contracts=self.to_run,
            seed=request.seed,
            settings=request.settings,
        )
        return replace(request.settings, continued=earlier.statistics)

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

        started = time.monotonic()
        with listening(before_run, keeper):
            try:
                self._found = [readable(row) for row in self._evidence(progress, keeper)]
            except ContractError as error:
                raise BadUse(one_line(str(error))) from error
            except CounterexampleError as error:
                reason = one_line(str(error)).removeprefix("counterexample: ")
                raise BadUse(f"{request.replay_source}: {reason}") from error
            except BaseException as error:
                if not is_implementations(error, self._implementation, self._built):
                    raise
                cause = f"the implementation raised {described(error)}"
                message = encodable(shortened(f"{cause}\n{traceback.format_exc()}"))
                found = undecided(self.checks, message, kept=kept, capabilities=self.capabilities)
                self._found = list(found)
        self._spent = time.monotonic() - started
        yield from self._found

    def controls(self, progress: Progress, before_run: Listener) -> Iterator["Control"]:
        """What the controls show, once every check was reported; none unless they were asked for."""
        if not self._request.controls or self._request.replay is not None:
            return
        from tokenlaw.controlling import Audited, control

        audited = Audited(
            suite=self._suite,
            implementation=self._implementation,
            capabilities=frozenset(self.capabilities),
            profile=self._profile,
            seed=self.seed,
            settings=self._settings,
            evidence=self._found,
            seconds=self._spent,
        )
        with listening(before_run, lambda _: None):
            yield from control(audited, progress)

    def _evidence(self, progress: Progress, keep: Keeper) -> list[Evidence]:
        replay = self._request.replay
        if replay is not None:
            found = self._suite.replay(
                self._implementation, replay, progress=progress, settings=self._settings
            )
            return decided(found)
        selected = frozenset(check.id for check in self.checks)
        return evidence_of(
            self._suite,
            self._implementation,
            profile=self._profile,
            seed=self.seed,
            selected=selected,
            progress=progress,
            settings=self._settings,
            keep=keep,
        )


def decided(evidence: list[Evidence]) -> list[Evidence]:
    """The evidence of a replay without what one trace can't exercise, unless that is all there is."""
    spoken = (Verdict.REFUTED, Verdict.UNKNOWN, Verdict.HOLDS)
    return [row for row in evidence if row.verdict in spoken] or evidence


def readable(evidence: Evidence) -> Evidence:
    """The evidence with a message that can be stored, and that isn't too long for anybody to read."""
    return replace(evidence, message=encodable(shortened(evidence.message)))


def _listed(contracts: Iterable[str]) -> str:
    return ", ".join(contracts) or "nothing"
