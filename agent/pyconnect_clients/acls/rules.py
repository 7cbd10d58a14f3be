"""The table of rules: client, grant, reason, and the symptom without the grant. Pure data.

The ids are those of docs/reference/acls.md. Symptoms are those of both kinds of worker, Apache's
and ours, unless one is named.
"""

from __future__ import annotations

import re

from pyconnect_clients.acls.model import GrantOperation, NeedSeverity, Role, Rule
from pyconnect_clients.connect_names import Phase

_TABLE = """
W1  WORKER  READ  BLOCKER  DISABLED
    join the workers' group
    else: the worker never joins: `Not authorized to access group` (30); Apache's exits
W2r  WORKER  READ  BLOCKER  DISABLED
    read connectors' configurations
    else: once the topic holds anything: the worker does not finish its start (29)
W2w  WORKER  WRITE  BLOCKER  DISABLED
    write connectors' configurations, as leader
    else: creating or changing a connector is answered with 500
W3r  WORKER  READ  BLOCKER  DISABLED
    read source offsets
    else: once the topic holds anything: the worker does not finish its start (29)
W3w  WORKER  WRITE  BLOCKER  DISABLED
    write source offsets
    else: offset commits fail; after a restart sources repeat what they had read
W4r  WORKER  READ  BLOCKER  DISABLED
    read the states of connectors and tasks
    else: once the topic holds anything: the worker does not finish its start (29)
W4w  WORKER  WRITE  BLOCKER  DISABLED
    write the states of connectors and tasks
    else: states are missing or old: `GET …/status` answers 404, errors in the log
W5  WORKER  CREATE  BLOCKER  DISABLED
    create the internal topic, which does not exist yet
    else: the worker does not start: the topic is not there, and may not be created
W6  WORKER  DESCRIBE_CONFIGS  WARNING  DISABLED
    verify the clean-up policy of the internal topic
    else: only a line in the log: the policy is not verified
W7  WORKER  WRITE  BLOCKER  PREPARING
    write to the config topic in transactions, as leader; every worker may become it
    else: the leader cannot claim write privileges (53): requests that need the leader time out with
    500; an Apache worker also stops its own tasks
W8  WORKER  IDEMPOTENT_WRITE  WARNING  PREPARING
    idempotent producers on brokers before 2.8
    else: producers are refused with cluster authorization failed (31)
W9r  WORKER  READ  WARNING  DISABLED
    read the journal of changes (agent.journal.topic)
    else: `pyconnect journal list` and `connectors history` fail
W9w  WORKER  WRITE  WARNING  DISABLED
    record changes in the journal (agent.journal.topic)
    else: changes are made and not recorded; the log says so
S1  PRODUCER  WRITE  BLOCKER  DISABLED
    write the source's records
    else: task FAILED: `Unrecoverable exception …`, cause topic authorization failed (29)
S2  ADMIN  DESCRIBE  BLOCKER  DISABLED
    see whether the target topic exists (topic.creation.*)
    else: task FAILED: `Not authorized to describe topic(s)`, cause topic authorization failed (29)
S3  ADMIN  CREATE  BLOCKER  DISABLED
    create the target topic, which does not exist yet (topic.creation.*)
    else: task FAILED: `Task failed to create new topic`
S4  PRODUCER  CREATE  BLOCKER  DISABLED
    have the broker create the target topic, which does not exist yet
    else: the records wait for a topic that is never created, or the task fails with 29
O1  PRODUCER  WRITE  BLOCKER  DISABLED
    write source offsets to the offsets topic, in the tasks' transactions
    else: task FAILED: `Failed to flush offsets and/or records for task`; before enabled: offset
    commits fail again and again
O2  CONSUMER  READ  BLOCKER  DISABLED
    read source offsets from the offsets topic
    else: once the topic holds anything: connector and tasks FAILED, naming the grant; on an Apache
    worker the start may hang without a state, with `Error polling` in its log
O3  ADMIN  DESCRIBE  BLOCKER  DISABLED
    find the end of the offsets topic
    else: connector and tasks FAILED: `Not authorized to get the end offsets for topic`
O4  ADMIN  CREATE  BLOCKER  DISABLED
    create the offsets topic, which does not exist yet
    else: connector and tasks FAILED: the offsets topic is not there
O5  ADMIN  DESCRIBE_CONFIGS  WARNING  DISABLED
    verify the clean-up policy of the offsets topic
    else: only a line in the log: the policy is not verified
O6  CONSUMER  DESCRIBE  WARNING  DISABLED
    librdkafka looks up the group of the consumer that reads offsets (our agents only)
    else: none: the agent ignores it
X1  PRODUCER  WRITE  BLOCKER  ENABLED
    the task's transactional producer
    else: task FAILED at its start: transactional id authorization failed (53)
X2  ADMIN  WRITE  BLOCKER  ENABLED
    fence the producers of older task sets at each reconfiguration
    else: the first start works; after the next reconfiguration all tasks are FAILED: `Failed to
    perform zombie fencing`, the cause (53) stands in the leader's log
X3  PRODUCER  WRITE  WARNING  ENABLED
    alter and reset offsets on Apache's workers, also of a connector without tasks
    else: 500 `Failed to modify offsets for source connector`
X4  PRODUCER  WRITE  WARNING  ENABLED
    alter and reset offsets on our agents (KIP-875)
    else: altering or resetting offsets is answered with 500
X5p  PRODUCER  IDEMPOTENT_WRITE  WARNING  ENABLED
    idempotent producers on brokers before 2.8
    else: producers are refused with cluster authorization failed (31)
X5a  ADMIN  IDEMPOTENT_WRITE  WARNING  ENABLED
    fencing on brokers before 2.8
    else: fencing is refused with cluster authorization failed (31)
K1  CONSUMER  READ  BLOCKER  DISABLED
    take part in the sink's consumer group and commit
    else: task FAILED: group authorization failed (30)
K2  CONSUMER  READ  BLOCKER  DISABLED
    read the sink's topic
    else: task FAILED: topic authorization failed (29); with topics.regex the topic is left out
    silently
K3  PRODUCER  WRITE  WARNING  DISABLED
    write to the dead letter queue
    else: reports of records that failed are lost, with an error in the log
K4d  ADMIN  DESCRIBE  BLOCKER  DISABLED
    see whether the dead letter queue exists
    else: the topic looks missing: its creation is tried, task FAILED `Could not initialize dead
    letter queue` unless that is allowed
K4c  ADMIN  CREATE  BLOCKER  DISABLED
    create the dead letter queue, which does not exist yet
    else: task FAILED: `Could not initialize dead letter queue with topic`
K5  ADMIN  DESCRIBE  WARNING  DISABLED
    show the sink's offsets
    else: 500 `Failed to retrieve consumer group offsets`; of a topic: it is left out
K6  ADMIN  READ  WARNING  DISABLED
    alter the sink's offsets
    else: 500 `Failed to alter consumer group offsets`
K7  ADMIN  DELETE  WARNING  DISABLED
    delete the sink's offsets, single ones or all
    else: 500 `Failed to alter …` or `Failed to reset consumer group offsets`
T1  TOOL  DESCRIBE  WARNING  DISABLED
    list ACLs, groups and the allowed operations on the cluster
    else: `acls check` cannot predict: it probes, and more stays unknown
T2  TOOL  DESCRIBE  WARNING  DISABLED
    see the members of the workers' group
    else: `upgrade` does not see all workers
T3  TOOL  READ  WARNING  DISABLED
    read task count records, and see which producers write
    else: fencing rights are checked for today's tasks only
T4  TOOL  DESCRIBE  WARNING  DISABLED
    see the transactions of leader and tasks
    else: `transactions` does not list them
T5  TOOL  READ  WARNING  DISABLED
    hold the lock that prevents two upgrades of the same cluster
    else: `upgrade` refuses to start
"""
"""Id, role, operation, severity, first phase; reason and symptom are indented."""


def _rule(row: str) -> Rule:
    head, *texts = row.splitlines()
    rule_id, role, operation, severity, phase = head.split()
    why, _, symptom = " ".join(map(str.strip, texts)).partition(" else: ")
    return Rule(
        id=rule_id,
        role=Role[role],
        operation=GrantOperation[operation],
        why=why,
        symptom=symptom,
        severity=NeedSeverity[severity],
        first_phase=Phase[phase],
    )


RULES: dict[str, Rule] = {
    rule.id: rule for rule in map(_rule, re.split(r"\n(?! )", _TABLE.strip()))
}
