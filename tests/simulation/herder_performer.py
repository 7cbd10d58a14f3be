"""The result of each effect of a herder in its surroundings, and the rules for that moment."""

from dataclasses import dataclass

from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.requests import FenceZombies
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.herder.connect_group import local_assignment
from tests.simulation.herder_surroundings import Answer, FakeConnector, FakeTask, Surroundings

MEMBER = "connect-1"
TASKS = "tasks"
"""The connector property with the number of task configs that the fake connector generates."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A stand-in for children.ports.TaskConfigsGenerated."""

    configs: tuple[ConnectorConfig, ...]
    connector_config_changed: bool
    values_changed: bool = False


@dataclass(slots=True)
class Performer(Surroundings):
    """The performer of effects, most of which end later, when a test lets them."""

    def _perform(self, effect: do.Effect) -> None:
        match effect:
            case do.Reply(request_id=number):
                assert number not in self.replies, f"request {number} answered twice"
                assert self.now_ms <= self.deadlines[number], f"request {number} answered late"
                self.replies[number] = effect
                self._fencing_answered(effect)
            case do.WakeAt(at_ms=at_ms, timer=timer):
                self.timers.append((at_ms, timer))
            case do.RequestRejoin():
                self._rejoin(effect)
            case do.LeaveGroup() | do.WarnOfOtherConfigTopic():
                pass
            case do.Abort(reason=reason):
                self.aborted = reason
            case _:
                self._perform_on_topics(effect)

    def _perform_on_topics(self, effect: do.Effect) -> None:
        match effect:
            case do.ReadConfigToEnd(effect_id=effect_id):
                self._later("reads", effect_id, self._read_to_end)
            case do.ClaimWrites(effect_id=effect_id):
                self._later("writes", effect_id, lambda: None)
            case do.WriteConnectorConfig(target_state=state):
                records = [config_records.connector_config(effect.connector, effect.config)]
                if state is not None:
                    records.insert(0, config_records.target_state(effect.connector, state))
                self._write(effect.effect_id, *records)
            case do.RemoveConnectorConfig(effect_id=effect_id, connector=connector):
                self._write(effect_id, *config_records.connector_removal(connector))
            case do.WriteTaskConfigs():
                ids = [ConnectorTaskId(effect.connector, n) for n in range(len(effect.configs))]
                self._write(
                    effect.effect_id,
                    *map(config_records.task_config, ids, effect.configs),
                    config_records.tasks_commit(effect.connector, len(ids)),
                )
            case do.WriteTargetState():
                record = config_records.target_state(effect.connector, effect.target_state)
                self._write(effect.effect_id, record)
            case do.WriteRestartRequest():
                request = config_records.restart_request(
                    effect.connector,
                    only_failed=effect.only_failed,
                    include_tasks=effect.include_tasks,
                )
                self._write(effect.effect_id, request)
            case do.WriteTaskCountRecord():
                record = config_records.task_count_record(effect.connector, effect.task_count)
                self._write(effect.effect_id, record)
            case do.FlushStatuses(effect_id=effect_id):
                self._later("statuses", effect_id, lambda: None)
            case _:
                self._perform_on_statuses(effect)

    def _perform_on_statuses(self, effect: do.Effect) -> None:
        match effect:
            case do.ReadStatus(effect_id=effect_id, connector=connector):
                info = self._state_info(connector)
                self.inbox.append(on.EffectDone(effect_id=effect_id, result=info))
            case do.PutStatus(item=str() as connector, status=status):
                self.connector_statuses[connector] = status
            case do.PutStatus(item=ConnectorTaskId() as task_id, status=status):
                self.task_statuses[task_id] = status
            case do.CleanStatuses(snapshot=snapshot):
                for connector in self.connector_statuses.keys() - snapshot.connector_configs.keys():
                    del self.connector_statuses[connector]
                for task_id in list(self.task_statuses):
                    if task_id not in snapshot.tasks(task_id.connector):
                        del self.task_statuses[task_id]
            case do.ForgetTopics() | do.ApplyLoggerLevel():
                pass
            case do.ValidateConfig(effect_id=effect_id):
                self._later(f"validate {effect_id}", effect_id, lambda: None)
            case _:
                self._perform_on_children(effect)

    def _perform_on_children(self, effect: do.Effect) -> None:
        match effect:
            case do.StartConnector(connector=connector):
                assert connector not in self.connectors, f"{connector} runs already"
                self.connectors[connector] = FakeConnector(effect.config, effect.target_state)
                self._will_report(connector)
            case do.StartTask(task_id=task_id):
                self._start_task(effect)
            case do.StopWork():
                self._stop_work(effect)
            case do.TransitionConnector(connector=connector, target_state=target):
                self.connectors[connector].target_state = target
                self._will_report(connector)
            case do.TransitionTask(task_id=task_id, target_state=target):
                self.tasks[task_id].target_state = target
                self._will_report(task_id)
            case do.GenerateTaskConfigs():
                self._generate(effect)
            case _:
                self._perform_on_producers(effect)

    def _perform_on_producers(self, effect: do.Effect) -> None:
        match effect:
            case do.FenceProducers(effect_id=effect_id):
                self.fenced.append((*effect.transactional_ids, *effect.ids_if_permitted))
                self._later("fencing", effect_id, lambda: None)
            case do.RequestFencing(effect_id=effect_id, connector=connector):
                # This worker leads its group of one.
                self.own_fencings[self.ask(FenceZombies(connector=connector))] = effect_id
            case do.PrepareOffsetChange() | do.CommitOffsetChange() | do.AbandonOffsetChange():
                self._change_offsets(effect)
            case do.AnswerTaskStart(task_id=task_id):
                answer = (task_id, effect.request_id, effect.refusal)
                self.started_answers.append(answer)
            case _:
                raise AssertionError(f"unknown effect: {effect}")

    def _change_offsets(
        self, effect: do.PrepareOffsetChange | do.CommitOffsetChange | do.AbandonOffsetChange
    ) -> None:
        """Check a change of offsets: the connector is stopped and has the same config as then."""
        connector = effect.connector
        match effect:
            case do.PrepareOffsetChange(effect_id=effect_id, config=config):
                self.prepared[connector] = config
                self._later(f"prepare {connector}", effect_id, lambda: True)
            case do.AbandonOffsetChange():
                self.prepared.pop(connector, None)
            case do.CommitOffsetChange(effect_id=effect_id):
                snapshot = self.state.snapshot
                assert self.prepared.pop(connector) == snapshot.connector_config(connector)
                assert snapshot.target_state(connector) is TargetState.STOPPED
                assert snapshot.task_count(connector) == 0
                if self.exactly_once:
                    assert connector not in snapshot.pending_fencing, "zombies are not fenced"
                self.changed.append(connector)
                self._later(f"change {connector}", effect_id, lambda: None)

    def _fencing_answered(self, reply: do.Reply) -> None:
        effect_id = self.own_fencings.pop(reply.request_id, None)
        if effect_id is not None and reply.error is None:
            self.inbox.append(on.EffectDone(effect_id=effect_id))
        elif effect_id is not None and reply.error is not None:
            self.inbox.append(on.EffectFailed(effect_id=effect_id, error=reply.error))

    def _start_task(self, effect: do.StartTask) -> None:
        """Check a task's start: it is not stale, not running and not of a stopped connector."""
        task_id = effect.task_id
        snapshot = self.state.snapshot
        assert task_id not in self.tasks, f"{task_id} runs already"
        assert effect.generation == snapshot.task_config_generations[task_id.connector]
        assert effect.task_config == snapshot.task_config(task_id)
        assert task_id in snapshot.tasks(task_id.connector)
        assert effect.target_state is not TargetState.STOPPED
        if self.exactly_once:
            assert task_id.connector not in snapshot.pending_fencing, "zombies are not fenced"
        membership = self.state.membership
        assert membership is not None
        assert membership.generation == self.generation, "started under an old assignment"
        self.tasks[task_id] = FakeTask(
            effect.task_config, effect.connector_config, effect.target_state, effect.generation
        )
        self._will_report(task_id)

    def _stop_work(self, effect: do.StopWork) -> None:
        assert effect.connectors or effect.tasks
        for connector in effect.connectors:
            assert connector in self.connectors, f"{connector} does not run"
        for task_id in effect.tasks:
            assert task_id in self.tasks, f"{task_id} does not run"

        def gone() -> None:
            for connector in effect.connectors:
                del self.connectors[connector]
                self._report(connector, State.UNASSIGNED)
            for task_id in effect.tasks:
                del self.tasks[task_id]
                self._report(task_id, State.UNASSIGNED)

        self._later(f"stop {effect.effect_id}", effect.effect_id, gone, may_fail=False)

    def _generate(self, effect: do.GenerateTaskConfigs) -> None:
        def configs() -> Generated:
            return Generated(
                generated_configs(effect.connector, effect.config),
                effect.config != effect.applied_config,
                values_changed=self.values_changed,
            )

        self._later(f"generate {effect.connector}", effect.effect_id, configs)

    def _rejoin(self, effect: do.RequestRejoin) -> None:
        """Join the group of one; no task of an older set may run meanwhile."""
        for task_id, task in self.tasks.items():
            generations = effect.snapshot.task_config_generations
            assert task.generation == generations[task_id.connector], f"{task_id} is stale"

        def join(_: bool) -> None:
            self.generation += 1
            assignment = local_assignment(MEMBER, "", effect.snapshot, effect.owned)
            event = on.Joined(member_id=MEMBER, generation=self.generation, assignment=assignment)
            self.inbox.append(event)

        self.answers.append(Answer("group", join, may_fail=False))


def generated_configs(connector: str, config: ConnectorConfig) -> tuple[ConnectorConfig, ...]:
    """Return the task configs that the fake connector generates from its config."""
    count = int(config.get(TASKS) or 1)
    text = config.get("text")
    return tuple({"task.class": "FakeTask", "text": text, "n": str(n)} for n in range(count))
