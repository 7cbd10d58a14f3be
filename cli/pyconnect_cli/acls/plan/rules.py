"""The table of rules: client, grant, reason, and the symptom without the grant. Pure data.

The ids are those of docs/reference/acls.md. Rows that apply to other brokers than 4.3.1 are not
`standard`. Symptoms are those of both kinds of worker, Apache's and ours, unless one is named.
"""

from __future__ import annotations

from pyconnect_cli.acls.plan.model import NeedSeverity, Role, Rule
from pyconnect_cli.kafka.acl_words import GrantOperation
from pyconnect_cli.rest.phases import Phase

_WARNING = NeedSeverity.WARNING
_PREPARING, _ENABLED = Phase.PREPARING, Phase.ENABLED
_W, _P, _C, _A, _T = Role.WORKER, Role.PRODUCER, Role.CONSUMER, Role.ADMIN, Role.TOOL

_ROWS = (
    Rule(
        id="W1",
        role=_W,
        operation=GrantOperation.READ,
        why="join the workers' group",
        symptom="the worker never joins: `Not authorized to access group` (30); Apache's exits",
    ),
    Rule(
        id="W2r",
        role=_W,
        operation=GrantOperation.READ,
        why="read connectors' configurations",
        symptom="once the topic holds anything: the worker does not finish its start (29)",
    ),
    Rule(
        id="W2w",
        role=_W,
        operation=GrantOperation.WRITE,
        why="write connectors' configurations, as leader",
        symptom="creating or changing a connector is answered with 500",
    ),
    Rule(
        id="W3r",
        role=_W,
        operation=GrantOperation.READ,
        why="read source offsets",
        symptom="once the topic holds anything: the worker does not finish its start (29)",
    ),
    Rule(
        id="W3w",
        role=_W,
        operation=GrantOperation.WRITE,
        why="write source offsets",
        symptom="offset commits fail; after a restart sources repeat what they had read",
    ),
    Rule(
        id="W4r",
        role=_W,
        operation=GrantOperation.READ,
        why="read the states of connectors and tasks",
        symptom="once the topic holds anything: the worker does not finish its start (29)",
    ),
    Rule(
        id="W4w",
        role=_W,
        operation=GrantOperation.WRITE,
        why="write the states of connectors and tasks",
        symptom="states are missing or old: `GET …/status` answers 404, errors in the log",
    ),
    Rule(
        id="W5",
        role=_W,
        operation=GrantOperation.CREATE,
        why="create the internal topic, which does not exist yet",
        symptom="the worker does not start: the topic is not there, and may not be created",
    ),
    Rule(
        id="W6",
        role=_W,
        operation=GrantOperation.DESCRIBE_CONFIGS,
        severity=_WARNING,
        why="verify the clean-up policy of the internal topic",
        symptom="only a line in the log: the policy is not verified",
    ),
    Rule(
        id="W7",
        role=_W,
        operation=GrantOperation.WRITE,
        first_phase=_PREPARING,
        why="write to the config topic in transactions, as leader; every worker may become it",
        symptom="the leader cannot claim write privileges (53): requests that need the"
        " leader time out with 500; an Apache worker also stops its own tasks",
    ),
    Rule(
        id="W8",
        role=_W,
        operation=GrantOperation.IDEMPOTENT_WRITE,
        first_phase=_PREPARING,
        severity=_WARNING,
        why="idempotent producers on brokers before 2.8",
        symptom="producers are refused with cluster authorization failed (31)",
    ),
    Rule(
        id="S1",
        role=_P,
        operation=GrantOperation.WRITE,
        why="write the source's records",
        symptom="task FAILED: `Unrecoverable exception …`, cause topic authorization failed (29)",
    ),
    Rule(
        id="S2",
        role=_A,
        operation=GrantOperation.DESCRIBE,
        why="see whether the target topic exists (topic.creation.*)",
        symptom="task FAILED: `Not authorized to describe topic(s)`, cause topic authorization"
        " failed (29)",
    ),
    Rule(
        id="S3",
        role=_A,
        operation=GrantOperation.CREATE,
        why="create the target topic, which does not exist yet (topic.creation.*)",
        symptom="task FAILED: `Task failed to create new topic`",
    ),
    Rule(
        id="S4",
        role=_P,
        operation=GrantOperation.CREATE,
        why="have the broker create the target topic, which does not exist yet",
        symptom="the records wait for a topic that is never created, or the task fails with 29",
    ),
    Rule(
        id="O1",
        role=_P,
        operation=GrantOperation.WRITE,
        why="write source offsets to the offsets topic, in the tasks' transactions",
        symptom="task FAILED: `Failed to flush offsets and/or records for task`; before enabled:"
        " offset commits fail again and again",
    ),
    Rule(
        id="O2",
        role=_C,
        operation=GrantOperation.READ,
        why="read source offsets from the offsets topic",
        symptom="once the topic holds anything: connector and tasks FAILED, naming the grant; on an"
        " Apache worker the start may hang without a state, with `Error polling` in its log",
    ),
    Rule(
        id="O3",
        role=_A,
        operation=GrantOperation.DESCRIBE,
        why="find the end of the offsets topic",
        symptom="connector and tasks FAILED: `Not authorized to get the end offsets for topic`",
    ),
    Rule(
        id="O4",
        role=_A,
        operation=GrantOperation.CREATE,
        why="create the offsets topic, which does not exist yet",
        symptom="connector and tasks FAILED: the offsets topic is not there",
    ),
    Rule(
        id="O5",
        role=_A,
        operation=GrantOperation.DESCRIBE_CONFIGS,
        severity=_WARNING,
        why="verify the clean-up policy of the offsets topic",
        symptom="only a line in the log: the policy is not verified",
    ),
    Rule(
        id="O6",
        role=_C,
        operation=GrantOperation.DESCRIBE,
        severity=_WARNING,
        why="librdkafka looks up the group of the consumer that reads offsets (our agents only)",
        symptom="none: the agent ignores it",
    ),
    Rule(
        id="X1",
        role=_P,
        operation=GrantOperation.WRITE,
        first_phase=_ENABLED,
        why="the task's transactional producer",
        symptom="task FAILED at its start: transactional id authorization failed (53)",
    ),
    Rule(
        id="X2",
        role=_A,
        operation=GrantOperation.WRITE,
        first_phase=_ENABLED,
        why="fence the producers of older task sets at each reconfiguration",
        symptom="the first start works; after the next reconfiguration all tasks are FAILED:"
        " `Failed to perform zombie fencing`, the cause (53) stands in the leader's log",
    ),
    Rule(
        id="X3",
        role=_P,
        operation=GrantOperation.WRITE,
        first_phase=_ENABLED,
        severity=_WARNING,
        why="alter and reset offsets on Apache's workers, also of a connector without tasks",
        symptom="500 `Failed to modify offsets for source connector`",
    ),
    Rule(
        id="X4",
        role=_P,
        operation=GrantOperation.WRITE,
        first_phase=_ENABLED,
        severity=_WARNING,
        why="alter and reset offsets on our agents (KIP-875)",
        symptom="altering or resetting offsets is answered with 500",
    ),
    Rule(
        id="X5p",
        role=_P,
        operation=GrantOperation.IDEMPOTENT_WRITE,
        first_phase=_ENABLED,
        severity=_WARNING,
        why="idempotent producers on brokers before 2.8",
        symptom="producers are refused with cluster authorization failed (31)",
    ),
    Rule(
        id="X5a",
        role=_A,
        operation=GrantOperation.IDEMPOTENT_WRITE,
        first_phase=_ENABLED,
        severity=_WARNING,
        why="fencing on brokers before 2.8",
        symptom="fencing is refused with cluster authorization failed (31)",
    ),
    Rule(
        id="K1",
        role=_C,
        operation=GrantOperation.READ,
        why="take part in the sink's consumer group and commit",
        symptom="task FAILED: group authorization failed (30)",
    ),
    Rule(
        id="K2",
        role=_C,
        operation=GrantOperation.READ,
        why="read the sink's topic",
        symptom="task FAILED: topic authorization failed (29); with topics.regex the topic"
        " is left out silently",
    ),
    Rule(
        id="K3",
        role=_P,
        operation=GrantOperation.WRITE,
        severity=_WARNING,
        why="write to the dead letter queue",
        symptom="reports of records that failed are lost, with an error in the log",
    ),
    Rule(
        id="K4d",
        role=_A,
        operation=GrantOperation.DESCRIBE,
        why="see whether the dead letter queue exists",
        symptom="the topic looks missing: its creation is tried, task FAILED `Could not initialize"
        " dead letter queue` unless that is allowed",
    ),
    Rule(
        id="K4c",
        role=_A,
        operation=GrantOperation.CREATE,
        why="create the dead letter queue, which does not exist yet",
        symptom="task FAILED: `Could not initialize dead letter queue with topic`",
    ),
    Rule(
        id="K5",
        role=_A,
        operation=GrantOperation.DESCRIBE,
        severity=_WARNING,
        why="show the sink's offsets",
        symptom="500 `Failed to retrieve consumer group offsets`; of a topic: it is left out",
    ),
    Rule(
        id="K6",
        role=_A,
        operation=GrantOperation.READ,
        severity=_WARNING,
        why="alter the sink's offsets",
        symptom="500 `Failed to alter consumer group offsets`",
    ),
    Rule(
        id="K7",
        role=_A,
        operation=GrantOperation.DELETE,
        severity=_WARNING,
        why="delete the sink's offsets, single ones or all",
        symptom="500 `Failed to alter …` or `Failed to reset consumer group offsets`",
    ),
    Rule(
        id="T1",
        role=_T,
        operation=GrantOperation.DESCRIBE,
        severity=_WARNING,
        why="list ACLs, groups and the allowed operations on the cluster",
        symptom="`acls check` cannot predict: it probes, and more stays unknown",
    ),
    Rule(
        id="T2",
        role=_T,
        operation=GrantOperation.DESCRIBE,
        severity=_WARNING,
        why="see the members of the workers' group",
        symptom="`upgrade` does not see all workers",
    ),
    Rule(
        id="T3",
        role=_T,
        operation=GrantOperation.READ,
        severity=_WARNING,
        why="read task count records, and see which producers write",
        symptom="fencing rights are checked for today's tasks only",
    ),
    Rule(
        id="T4",
        role=_T,
        operation=GrantOperation.DESCRIBE,
        severity=_WARNING,
        why="see the transactions of leader and tasks",
        symptom="`transactions` does not list them",
    ),
    Rule(
        id="T5",
        role=_T,
        operation=GrantOperation.READ,
        severity=_WARNING,
        why="hold the lock that prevents two upgrades of the same cluster",
        symptom="`upgrade` refuses to start",
    ),
)
RULES: dict[str, Rule] = {row.id: row for row in _ROWS}
