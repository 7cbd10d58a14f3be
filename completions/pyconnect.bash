# bash completion of pyconnect; made by `pyconnect completion bash`.
# Nouns, verbs and options are static; names come from `pyconnect __complete` (cached, 300 ms).

_pyconnect_names() {
    local kind=$1 index name quoted
    local -a given=()
    for ((index = 1; index < ${#words[@]} - 1; index++)); do
        case ${words[index]} in
            --url | --context | --config) given+=("${words[index]}" "${words[index + 1]}") ;;
            --url=* | --context=* | --config=*) given+=("${words[index]}") ;;
        esac
    done
    while IFS= read -r name; do
        printf -v quoted %q "$name"
        [[ $name == "$cur"* || $quoted == "$cur"* ]] && COMPREPLY+=("$quoted")
    done < <(pyconnect __complete "$kind" "${given[@]}" 2>/dev/null)
}

_pyconnect_files() {
    local name
    compopt -o filenames 2>/dev/null
    while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$cur")
}

_pyconnect() {
    COMPREPLY=()
    local line=${COMP_LINE:0:COMP_POINT}
    local -a words=()
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local cur=${words[${#words[@]} - 1]}
    _pyconnect_find
    # bash replaces only what stands after the last of these characters.
    local kept=${cur%"${cur##*[:=]}"} index
    if [[ -n $kept && $COMP_WORDBREAKS == *:* ]]; then
        for index in "${!COMPREPLY[@]}"; do COMPREPLY[index]=${COMPREPLY[index]#"$kept"}; done
    fi
}

_pyconnect_find() {
    local previous=${words[${#words[@]} - 2]} noun="" verb="" index word skip=0
    if [[ $cur == --*=* ]]; then
        previous=${cur%%=*}
        cur=${cur#*=}
    fi
    for ((index = 1; index < ${#words[@]} - 1; index++)); do
        word=${words[index]}
        if ((skip)); then skip=0; continue; fi
        case $word in
            --against|--backup|--bucket-minutes|--ca-file|--cert|--class|--column|--columns|--conf|--config|--config-topic|--connector|--context|--data-dir|--deadline|--description|--dir|--file|--files|--findings|--for|--format|--group|--group-id|--host|--identity|--initial-state|--interval|--inventory|--jars|--jdbc-properties|--jdbc-url|--jitter|--kafka-bootstrap|--kafka-dir|--kafka-properties|--key|--lines|--lock|--master|--max|--max-failures|--min-idle|--name|--offsets-from|--offsets-topic|--output|--packages|--parallel|--partition|--password|--password-command|--password-file|--phase|--plugin-path|--port|--principal|--properties-file|--ranges|--regex|--registry|--registry-properties|--remote|--report|--right-bootstrap|--right-properties|--sasl|--scope|--search|--selector|--sequence|--server|--set|--settle|--shift-by|--since|--spec|--state|--status-topic|--step-timeout|--strimzi-cluster|--super-user|--table|--textfile|--tier|--timeout|--to-context|--to-datetime|--token|--token-command|--token-file|--topic|--type|--unset|--url|--username|--value|--version|--wait|--worker|--worker-config|--worker-property|-d|-e|-f|-l|-n|-o|-p|-s|-t) skip=1 ;;
            -*) ;;
            *)
                if [[ -z $noun ]]; then noun=$word
                elif [[ -z $verb ]]; then verb=$word; fi
                ;;
        esac
    done
    case $noun in
        connector) noun=connectors ;;
        task) noun=tasks ;;
        offset) noun=offsets ;;
        topic) noun=topics ;;
        acl) noun=acls ;;
        transaction|txn) noun=transactions ;;
        plugin) noun=plugins ;;
        logger) noun=loggers ;;
        agents) noun=agent ;;
        contexts) noun=context ;;
    esac
    # nouns: acl|acls|agent|agents|completion|config|connector|connectors|context|contexts|doctor|health|help|info|logger|loggers|offset|offsets|plugin|plugins|reconcile|sandbox|task|tasks|topic|topics|transaction|transactions|txn|upgrade|version
    case "$noun $verb $previous" in
        "connectors list --regex"|"connectors list -e") :; return ;;
        "connectors list --selector"|"connectors list -l") :; return ;;
        "connectors list --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors list --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors list --class") :; return ;;
        "connectors list --worker") :; return ;;
        "connectors wait --for") :; return ;;
        "connectors wait --regex"|"connectors wait -e") :; return ;;
        "connectors wait --selector"|"connectors wait -l") :; return ;;
        "connectors wait --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors wait --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors wait --class") :; return ;;
        "connectors wait --worker") :; return ;;
        "connectors watch --interval") :; return ;;
        "connectors watch --regex"|"connectors watch -e") :; return ;;
        "connectors watch --selector"|"connectors watch -l") :; return ;;
        "connectors watch --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors watch --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors watch --class") :; return ;;
        "connectors watch --worker") :; return ;;
        "connectors create --file"|"connectors create -f") _pyconnect_files; return ;;
        "connectors create --set"|"connectors create -s") :; return ;;
        "connectors create --initial-state") :; return ;;
        "connectors create --offsets-from") _pyconnect_files; return ;;
        "connectors create --parallel") :; return ;;
        "connectors create --max-failures") :; return ;;
        "connectors create --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors create --lock") :; return ;;
        "connectors create --jitter") :; return ;;
        "connectors create --deadline") :; return ;;
        "connectors create --textfile") _pyconnect_files; return ;;
        "connectors apply --file"|"connectors apply -f") _pyconnect_files; return ;;
        "connectors apply --regex"|"connectors apply -e") :; return ;;
        "connectors apply --selector"|"connectors apply -l") :; return ;;
        "connectors apply --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors apply --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors apply --class") :; return ;;
        "connectors apply --worker") :; return ;;
        "connectors apply --parallel") :; return ;;
        "connectors apply --max-failures") :; return ;;
        "connectors apply --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors apply --lock") :; return ;;
        "connectors apply --jitter") :; return ;;
        "connectors apply --deadline") :; return ;;
        "connectors apply --textfile") _pyconnect_files; return ;;
        "connectors diff --file"|"connectors diff -f") _pyconnect_files; return ;;
        "connectors patch --set"|"connectors patch -s") :; return ;;
        "connectors patch --unset") :; return ;;
        "connectors patch --regex"|"connectors patch -e") :; return ;;
        "connectors patch --selector"|"connectors patch -l") :; return ;;
        "connectors patch --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors patch --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors patch --class") :; return ;;
        "connectors patch --worker") :; return ;;
        "connectors patch --parallel") :; return ;;
        "connectors patch --max-failures") :; return ;;
        "connectors patch --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors patch --lock") :; return ;;
        "connectors patch --jitter") :; return ;;
        "connectors patch --deadline") :; return ;;
        "connectors patch --textfile") _pyconnect_files; return ;;
        "connectors validate --file"|"connectors validate -f") _pyconnect_files; return ;;
        "connectors validate --set"|"connectors validate -s") :; return ;;
        "connectors export --dir"|"connectors export -d") _pyconnect_files; return ;;
        "connectors export --regex"|"connectors export -e") :; return ;;
        "connectors export --selector"|"connectors export -l") :; return ;;
        "connectors export --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors export --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors export --class") :; return ;;
        "connectors export --worker") :; return ;;
        "connectors edit --lock") :; return ;;
        "connectors edit --jitter") :; return ;;
        "connectors edit --deadline") :; return ;;
        "connectors edit --textfile") _pyconnect_files; return ;;
        "connectors pause --regex"|"connectors pause -e") :; return ;;
        "connectors pause --selector"|"connectors pause -l") :; return ;;
        "connectors pause --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors pause --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors pause --class") :; return ;;
        "connectors pause --worker") :; return ;;
        "connectors pause --parallel") :; return ;;
        "connectors pause --max-failures") :; return ;;
        "connectors pause --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors pause --lock") :; return ;;
        "connectors pause --jitter") :; return ;;
        "connectors pause --deadline") :; return ;;
        "connectors pause --textfile") _pyconnect_files; return ;;
        "connectors resume --regex"|"connectors resume -e") :; return ;;
        "connectors resume --selector"|"connectors resume -l") :; return ;;
        "connectors resume --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors resume --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors resume --class") :; return ;;
        "connectors resume --worker") :; return ;;
        "connectors resume --parallel") :; return ;;
        "connectors resume --max-failures") :; return ;;
        "connectors resume --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors resume --lock") :; return ;;
        "connectors resume --jitter") :; return ;;
        "connectors resume --deadline") :; return ;;
        "connectors resume --textfile") _pyconnect_files; return ;;
        "connectors stop --regex"|"connectors stop -e") :; return ;;
        "connectors stop --selector"|"connectors stop -l") :; return ;;
        "connectors stop --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors stop --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors stop --class") :; return ;;
        "connectors stop --worker") :; return ;;
        "connectors stop --parallel") :; return ;;
        "connectors stop --max-failures") :; return ;;
        "connectors stop --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors stop --lock") :; return ;;
        "connectors stop --jitter") :; return ;;
        "connectors stop --deadline") :; return ;;
        "connectors stop --textfile") _pyconnect_files; return ;;
        "connectors restart --regex"|"connectors restart -e") :; return ;;
        "connectors restart --selector"|"connectors restart -l") :; return ;;
        "connectors restart --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors restart --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors restart --class") :; return ;;
        "connectors restart --worker") :; return ;;
        "connectors restart --parallel") :; return ;;
        "connectors restart --max-failures") :; return ;;
        "connectors restart --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors restart --lock") :; return ;;
        "connectors restart --jitter") :; return ;;
        "connectors restart --deadline") :; return ;;
        "connectors restart --textfile") _pyconnect_files; return ;;
        "connectors delete --regex"|"connectors delete -e") :; return ;;
        "connectors delete --selector"|"connectors delete -l") :; return ;;
        "connectors delete --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors delete --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors delete --class") :; return ;;
        "connectors delete --worker") :; return ;;
        "connectors delete --parallel") :; return ;;
        "connectors delete --max-failures") :; return ;;
        "connectors delete --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors delete --lock") :; return ;;
        "connectors delete --jitter") :; return ;;
        "connectors delete --deadline") :; return ;;
        "connectors delete --textfile") _pyconnect_files; return ;;
        "connectors prune --regex"|"connectors prune -e") :; return ;;
        "connectors prune --selector"|"connectors prune -l") :; return ;;
        "connectors prune --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "connectors prune --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "connectors prune --class") :; return ;;
        "connectors prune --worker") :; return ;;
        "connectors prune --parallel") :; return ;;
        "connectors prune --max-failures") :; return ;;
        "connectors prune --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "connectors prune --lock") :; return ;;
        "connectors prune --jitter") :; return ;;
        "connectors prune --deadline") :; return ;;
        "connectors prune --textfile") _pyconnect_files; return ;;
        "tasks list --regex"|"tasks list -e") :; return ;;
        "tasks list --selector"|"tasks list -l") :; return ;;
        "tasks list --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "tasks list --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "tasks list --class") :; return ;;
        "tasks list --worker") :; return ;;
        "tasks restart --regex"|"tasks restart -e") :; return ;;
        "tasks restart --selector"|"tasks restart -l") :; return ;;
        "tasks restart --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "tasks restart --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "tasks restart --class") :; return ;;
        "tasks restart --worker") :; return ;;
        "tasks restart --parallel") :; return ;;
        "tasks restart --max-failures") :; return ;;
        "tasks restart --wait") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED DELETED" -- "$cur")); return ;;
        "tasks restart --lock") :; return ;;
        "tasks restart --jitter") :; return ;;
        "tasks restart --deadline") :; return ;;
        "tasks restart --textfile") _pyconnect_files; return ;;
        "tasks kill --parallel") :; return ;;
        "tasks kill --max-failures") :; return ;;
        "tasks kill --lock") :; return ;;
        "tasks kill --jitter") :; return ;;
        "tasks kill --deadline") :; return ;;
        "tasks kill --textfile") _pyconnect_files; return ;;
        "offsets diff --file"|"offsets diff -f") _pyconnect_files; return ;;
        "offsets diff --backup") :; return ;;
        "offsets export --file"|"offsets export -f") _pyconnect_files; return ;;
        "offsets reset --partition"|"offsets reset -p") :; return ;;
        "offsets reset --regex"|"offsets reset -e") :; return ;;
        "offsets reset --selector"|"offsets reset -l") :; return ;;
        "offsets reset --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "offsets reset --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "offsets reset --class") :; return ;;
        "offsets reset --worker") :; return ;;
        "offsets reset --parallel") :; return ;;
        "offsets reset --max-failures") :; return ;;
        "offsets reset --lock") :; return ;;
        "offsets reset --jitter") :; return ;;
        "offsets reset --deadline") :; return ;;
        "offsets reset --textfile") _pyconnect_files; return ;;
        "offsets alter --file"|"offsets alter -f") _pyconnect_files; return ;;
        "offsets alter --set"|"offsets alter -s") :; return ;;
        "offsets alter --lock") :; return ;;
        "offsets alter --jitter") :; return ;;
        "offsets alter --deadline") :; return ;;
        "offsets alter --textfile") _pyconnect_files; return ;;
        "offsets seek --shift-by") :; return ;;
        "offsets seek --to-datetime") :; return ;;
        "offsets seek --partition"|"offsets seek -p") :; return ;;
        "offsets seek --regex"|"offsets seek -e") :; return ;;
        "offsets seek --selector"|"offsets seek -l") :; return ;;
        "offsets seek --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "offsets seek --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "offsets seek --class") :; return ;;
        "offsets seek --worker") :; return ;;
        "offsets seek --parallel") :; return ;;
        "offsets seek --max-failures") :; return ;;
        "offsets seek --lock") :; return ;;
        "offsets seek --jitter") :; return ;;
        "offsets seek --deadline") :; return ;;
        "offsets seek --textfile") _pyconnect_files; return ;;
        "offsets lag --regex"|"offsets lag -e") :; return ;;
        "offsets lag --selector"|"offsets lag -l") :; return ;;
        "offsets lag --state") COMPREPLY=($(compgen -W "RUNNING PAUSED STOPPED FAILED RESTARTING UNASSIGNED" -- "$cur")); return ;;
        "offsets lag --type") COMPREPLY=($(compgen -W "source sink" -- "$cur")); return ;;
        "offsets lag --class") :; return ;;
        "offsets lag --worker") :; return ;;
        "offsets undo --lock") :; return ;;
        "offsets undo --jitter") :; return ;;
        "offsets undo --deadline") :; return ;;
        "offsets undo --textfile") _pyconnect_files; return ;;
        "offsets import --file"|"offsets import -f") _pyconnect_files; return ;;
        "offsets import --lock") :; return ;;
        "offsets import --jitter") :; return ;;
        "offsets import --deadline") :; return ;;
        "offsets import --textfile") _pyconnect_files; return ;;
        "offsets copy --to-context") _pyconnect_names contexts; return ;;
        "offsets copy --lock") :; return ;;
        "offsets copy --jitter") :; return ;;
        "offsets copy --deadline") :; return ;;
        "offsets copy --textfile") _pyconnect_files; return ;;
        "offsets orphans --topic"|"offsets orphans -t") :; return ;;
        "offsets orphans --file"|"offsets orphans -f") _pyconnect_files; return ;;
        "offsets orphans --parallel") :; return ;;
        "offsets orphans --max-failures") :; return ;;
        "offsets orphans --lock") :; return ;;
        "offsets orphans --jitter") :; return ;;
        "offsets orphans --deadline") :; return ;;
        "offsets orphans --textfile") _pyconnect_files; return ;;
        "topics read --max") :; return ;;
        "topics read --partition") :; return ;;
        "acls check --phase") :; return ;;
        "acls check --connector") _pyconnect_names connectors; return ;;
        "acls check --worker-config") _pyconnect_files; return ;;
        "acls check --worker-property") :; return ;;
        "acls check --principal") :; return ;;
        "acls check --topic") :; return ;;
        "acls check --host") :; return ;;
        "acls check --super-user") :; return ;;
        "acls explain --phase") :; return ;;
        "acls explain --worker-config") _pyconnect_files; return ;;
        "acls explain --worker-property") :; return ;;
        "acls explain --principal") :; return ;;
        "acls explain --topic") :; return ;;
        "acls generate --phase") :; return ;;
        "acls generate --connector") _pyconnect_names connectors; return ;;
        "acls generate --worker-config") _pyconnect_files; return ;;
        "acls generate --worker-property") :; return ;;
        "acls generate --principal") :; return ;;
        "acls generate --topic") :; return ;;
        "acls generate --host") :; return ;;
        "acls generate --super-user") :; return ;;
        "acls generate --format") :; return ;;
        "acls generate --strimzi-cluster") :; return ;;
        "transactions list --connector") _pyconnect_names connectors; return ;;
        "transactions list --group-id") :; return ;;
        "transactions describe --group-id") :; return ;;
        "transactions find-hanging --connector") _pyconnect_names connectors; return ;;
        "transactions find-hanging --topic") :; return ;;
        "transactions find-hanging --group-id") :; return ;;
        "transactions find-hanging --min-idle") :; return ;;
        "transactions abort --min-idle") :; return ;;
        "transactions abort --lock") :; return ;;
        "transactions abort --jitter") :; return ;;
        "transactions abort --deadline") :; return ;;
        "transactions abort --textfile") _pyconnect_files; return ;;
        "plugins test --file"|"plugins test -f") _pyconnect_files; return ;;
        "plugins test --plugin-path") _pyconnect_files; return ;;
        "plugins test --for") :; return ;;
        "plugins list --search") :; return ;;
        "plugins describe --search") :; return ;;
        "plugins describe --version") :; return ;;
        "plugins validate --file"|"plugins validate -f") _pyconnect_files; return ;;
        "loggers set --scope") :; return ;;
        "loggers set --for") :; return ;;
        "reconcile ranges --connector") _pyconnect_names connectors; return ;;
        "reconcile ranges --against") _pyconnect_files; return ;;
        "reconcile ranges --report") _pyconnect_files; return ;;
        "reconcile ranges --spec") _pyconnect_files; return ;;
        "reconcile ranges --ranges") _pyconnect_files; return ;;
        "reconcile ranges --since") :; return ;;
        "reconcile ranges --findings") :; return ;;
        "reconcile ranges --registry") :; return ;;
        "reconcile ranges --registry-properties") _pyconnect_files; return ;;
        "reconcile ranges --master") :; return ;;
        "reconcile ranges --remote") :; return ;;
        "reconcile ranges --conf") :; return ;;
        "reconcile ranges --packages") :; return ;;
        "reconcile ranges --jars") :; return ;;
        "reconcile ranges --properties-file") _pyconnect_files; return ;;
        "reconcile ranges --lock") :; return ;;
        "reconcile ranges --jitter") :; return ;;
        "reconcile ranges --deadline") :; return ;;
        "reconcile ranges --textfile") _pyconnect_files; return ;;
        "reconcile transactions --connector") _pyconnect_names connectors; return ;;
        "reconcile transactions --report") _pyconnect_files; return ;;
        "reconcile transactions --spec") _pyconnect_files; return ;;
        "reconcile transactions --ranges") _pyconnect_files; return ;;
        "reconcile transactions --since") :; return ;;
        "reconcile transactions --findings") :; return ;;
        "reconcile transactions --registry") :; return ;;
        "reconcile transactions --registry-properties") _pyconnect_files; return ;;
        "reconcile transactions --master") :; return ;;
        "reconcile transactions --remote") :; return ;;
        "reconcile transactions --conf") :; return ;;
        "reconcile transactions --packages") :; return ;;
        "reconcile transactions --jars") :; return ;;
        "reconcile transactions --properties-file") _pyconnect_files; return ;;
        "reconcile transactions --lock") :; return ;;
        "reconcile transactions --jitter") :; return ;;
        "reconcile transactions --deadline") :; return ;;
        "reconcile transactions --textfile") _pyconnect_files; return ;;
        "reconcile sequence --connector") _pyconnect_names connectors; return ;;
        "reconcile sequence --sequence") :; return ;;
        "reconcile sequence --group") :; return ;;
        "reconcile sequence --report") _pyconnect_files; return ;;
        "reconcile sequence --spec") _pyconnect_files; return ;;
        "reconcile sequence --ranges") _pyconnect_files; return ;;
        "reconcile sequence --since") :; return ;;
        "reconcile sequence --findings") :; return ;;
        "reconcile sequence --registry") :; return ;;
        "reconcile sequence --registry-properties") _pyconnect_files; return ;;
        "reconcile sequence --master") :; return ;;
        "reconcile sequence --remote") :; return ;;
        "reconcile sequence --conf") :; return ;;
        "reconcile sequence --packages") :; return ;;
        "reconcile sequence --jars") :; return ;;
        "reconcile sequence --properties-file") _pyconnect_files; return ;;
        "reconcile sequence --lock") :; return ;;
        "reconcile sequence --jitter") :; return ;;
        "reconcile sequence --deadline") :; return ;;
        "reconcile sequence --textfile") _pyconnect_files; return ;;
        "reconcile duplicates --connector") _pyconnect_names connectors; return ;;
        "reconcile duplicates --identity") :; return ;;
        "reconcile duplicates --report") _pyconnect_files; return ;;
        "reconcile duplicates --spec") _pyconnect_files; return ;;
        "reconcile duplicates --ranges") _pyconnect_files; return ;;
        "reconcile duplicates --since") :; return ;;
        "reconcile duplicates --findings") :; return ;;
        "reconcile duplicates --registry") :; return ;;
        "reconcile duplicates --registry-properties") _pyconnect_files; return ;;
        "reconcile duplicates --master") :; return ;;
        "reconcile duplicates --remote") :; return ;;
        "reconcile duplicates --conf") :; return ;;
        "reconcile duplicates --packages") :; return ;;
        "reconcile duplicates --jars") :; return ;;
        "reconcile duplicates --properties-file") _pyconnect_files; return ;;
        "reconcile duplicates --lock") :; return ;;
        "reconcile duplicates --jitter") :; return ;;
        "reconcile duplicates --deadline") :; return ;;
        "reconcile duplicates --textfile") _pyconnect_files; return ;;
        "reconcile offsets --offsets-topic") :; return ;;
        "reconcile offsets --config-topic") :; return ;;
        "reconcile offsets --status-topic") :; return ;;
        "reconcile offsets --report") _pyconnect_files; return ;;
        "reconcile offsets --spec") _pyconnect_files; return ;;
        "reconcile offsets --ranges") _pyconnect_files; return ;;
        "reconcile offsets --since") :; return ;;
        "reconcile offsets --findings") :; return ;;
        "reconcile offsets --registry") :; return ;;
        "reconcile offsets --registry-properties") _pyconnect_files; return ;;
        "reconcile offsets --master") :; return ;;
        "reconcile offsets --remote") :; return ;;
        "reconcile offsets --conf") :; return ;;
        "reconcile offsets --packages") :; return ;;
        "reconcile offsets --jars") :; return ;;
        "reconcile offsets --properties-file") _pyconnect_files; return ;;
        "reconcile offsets --lock") :; return ;;
        "reconcile offsets --jitter") :; return ;;
        "reconcile offsets --deadline") :; return ;;
        "reconcile offsets --textfile") _pyconnect_files; return ;;
        "reconcile source-topic --files") :; return ;;
        "reconcile source-topic --format") :; return ;;
        "reconcile source-topic --table") :; return ;;
        "reconcile source-topic --jdbc-url") :; return ;;
        "reconcile source-topic --jdbc-properties") _pyconnect_files; return ;;
        "reconcile source-topic --topic") :; return ;;
        "reconcile source-topic --value") :; return ;;
        "reconcile source-topic --column") :; return ;;
        "reconcile source-topic --report") _pyconnect_files; return ;;
        "reconcile source-topic --spec") _pyconnect_files; return ;;
        "reconcile source-topic --ranges") _pyconnect_files; return ;;
        "reconcile source-topic --since") :; return ;;
        "reconcile source-topic --findings") :; return ;;
        "reconcile source-topic --registry") :; return ;;
        "reconcile source-topic --registry-properties") _pyconnect_files; return ;;
        "reconcile source-topic --master") :; return ;;
        "reconcile source-topic --remote") :; return ;;
        "reconcile source-topic --conf") :; return ;;
        "reconcile source-topic --packages") :; return ;;
        "reconcile source-topic --jars") :; return ;;
        "reconcile source-topic --properties-file") _pyconnect_files; return ;;
        "reconcile source-topic --lock") :; return ;;
        "reconcile source-topic --jitter") :; return ;;
        "reconcile source-topic --deadline") :; return ;;
        "reconcile source-topic --textfile") _pyconnect_files; return ;;
        "reconcile topic-topic --right-bootstrap") :; return ;;
        "reconcile topic-topic --right-properties") _pyconnect_files; return ;;
        "reconcile topic-topic --value") :; return ;;
        "reconcile topic-topic --column") :; return ;;
        "reconcile topic-topic --report") _pyconnect_files; return ;;
        "reconcile topic-topic --spec") _pyconnect_files; return ;;
        "reconcile topic-topic --ranges") _pyconnect_files; return ;;
        "reconcile topic-topic --since") :; return ;;
        "reconcile topic-topic --findings") :; return ;;
        "reconcile topic-topic --registry") :; return ;;
        "reconcile topic-topic --registry-properties") _pyconnect_files; return ;;
        "reconcile topic-topic --master") :; return ;;
        "reconcile topic-topic --remote") :; return ;;
        "reconcile topic-topic --conf") :; return ;;
        "reconcile topic-topic --packages") :; return ;;
        "reconcile topic-topic --jars") :; return ;;
        "reconcile topic-topic --properties-file") _pyconnect_files; return ;;
        "reconcile topic-topic --lock") :; return ;;
        "reconcile topic-topic --jitter") :; return ;;
        "reconcile topic-topic --deadline") :; return ;;
        "reconcile topic-topic --textfile") _pyconnect_files; return ;;
        "reconcile topic-sink --files") :; return ;;
        "reconcile topic-sink --format") :; return ;;
        "reconcile topic-sink --table") :; return ;;
        "reconcile topic-sink --jdbc-url") :; return ;;
        "reconcile topic-sink --jdbc-properties") _pyconnect_files; return ;;
        "reconcile topic-sink --topic") :; return ;;
        "reconcile topic-sink --value") :; return ;;
        "reconcile topic-sink --column") :; return ;;
        "reconcile topic-sink --report") _pyconnect_files; return ;;
        "reconcile topic-sink --spec") _pyconnect_files; return ;;
        "reconcile topic-sink --ranges") _pyconnect_files; return ;;
        "reconcile topic-sink --since") :; return ;;
        "reconcile topic-sink --findings") :; return ;;
        "reconcile topic-sink --registry") :; return ;;
        "reconcile topic-sink --registry-properties") _pyconnect_files; return ;;
        "reconcile topic-sink --master") :; return ;;
        "reconcile topic-sink --remote") :; return ;;
        "reconcile topic-sink --conf") :; return ;;
        "reconcile topic-sink --packages") :; return ;;
        "reconcile topic-sink --jars") :; return ;;
        "reconcile topic-sink --properties-file") _pyconnect_files; return ;;
        "reconcile topic-sink --lock") :; return ;;
        "reconcile topic-sink --jitter") :; return ;;
        "reconcile topic-sink --deadline") :; return ;;
        "reconcile topic-sink --textfile") _pyconnect_files; return ;;
        "reconcile completeness --tier") :; return ;;
        "reconcile completeness --bucket-minutes") :; return ;;
        "reconcile completeness --report") _pyconnect_files; return ;;
        "reconcile completeness --spec") _pyconnect_files; return ;;
        "reconcile completeness --ranges") _pyconnect_files; return ;;
        "reconcile completeness --since") :; return ;;
        "reconcile completeness --findings") :; return ;;
        "reconcile completeness --registry") :; return ;;
        "reconcile completeness --registry-properties") _pyconnect_files; return ;;
        "reconcile completeness --master") :; return ;;
        "reconcile completeness --remote") :; return ;;
        "reconcile completeness --conf") :; return ;;
        "reconcile completeness --packages") :; return ;;
        "reconcile completeness --jars") :; return ;;
        "reconcile completeness --properties-file") _pyconnect_files; return ;;
        "reconcile completeness --lock") :; return ;;
        "reconcile completeness --jitter") :; return ;;
        "reconcile completeness --deadline") :; return ;;
        "reconcile completeness --textfile") _pyconnect_files; return ;;
        "upgrade  --phase") COMPREPLY=($(compgen -W "disabled preparing enabled" -- "$cur")); return ;;
        "upgrade  --worker") :; return ;;
        "upgrade  --inventory") _pyconnect_files; return ;;
        "upgrade  --worker-config") _pyconnect_files; return ;;
        "upgrade  --group") :; return ;;
        "upgrade  --settle") :; return ;;
        "upgrade  --step-timeout") :; return ;;
        "context set --description") :; return ;;
        "sandbox up --name") :; return ;;
        "sandbox up --port") :; return ;;
        "sandbox up --data-dir") _pyconnect_files; return ;;
        "sandbox up --sasl") :; return ;;
        "sandbox up --kafka-dir") _pyconnect_files; return ;;
        "sandbox down --name") :; return ;;
        "sandbox status --name") :; return ;;
        "sandbox logs --name") :; return ;;
        "sandbox logs --server") :; return ;;
        "sandbox logs --lines"|"sandbox logs -n") :; return ;;
        "sandbox demo --name") :; return ;;
    esac
    case $previous in
        --context) _pyconnect_names contexts; return ;;
        --url) :; return ;;
        --output|-o) COMPREPLY=($(compgen -W "table wide json yaml ndjson name" -- "$cur")); return ;;
        --columns) :; return ;;
        --timeout) :; return ;;
        --config) _pyconnect_files; return ;;
        --username) :; return ;;
        --password) :; return ;;
        --password-file) _pyconnect_files; return ;;
        --password-command) :; return ;;
        --token) :; return ;;
        --token-file) _pyconnect_files; return ;;
        --token-command) :; return ;;
        --ca-file) _pyconnect_files; return ;;
        --cert) _pyconnect_files; return ;;
        --key) _pyconnect_files; return ;;
        --kafka-bootstrap) :; return ;;
        --kafka-properties) _pyconnect_files; return ;;
    esac
    local options="--context --url --output -o --columns --no-headers --timeout --yes -y --quiet -q --verbose -v --debug --no-color --config --username --password --password-file --password-command --token --token-file --token-command --ca-file --cert --key --insecure --kafka-bootstrap --kafka-properties --help"
    case "$noun $verb" in
        " ")
            if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$cur"))
            else COMPREPLY=($(compgen -W "connectors tasks offsets topics acls transactions plugins loggers reconcile upgrade agent health info doctor context config sandbox completion version help" -- "$cur")); fi
            ;;
        "connectors ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "list get describe topics wait watch create apply diff patch validate export edit pause resume stop restart delete prune" -- "$cur"))
            fi
            ;;
        "connectors list"|"connectors ls")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors get")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--show-secrets $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors describe"|"connectors show")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--show-secrets $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors topics")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--reset $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors wait")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--for --all --regex -e --selector -l --state --type --class --worker --failed $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors watch")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--interval --all --regex -e --selector -l --state --type --class --worker --failed $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors create")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f --set -s --initial-state --offsets-from --dry-run --exit-code --parallel --max-failures --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "connectors apply")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f --prune --no-validate --all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "connectors diff")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f $options" -- "$cur"))
            fi
            ;;
        "connectors patch")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--set -s --unset --all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors validate")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f --set -s $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors export")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--dir -d --show-secrets --all --regex -e --selector -l --state --type --class --worker --failed $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors edit")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--dry-run --exit-code --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors pause")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors resume")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors stop")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors restart")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--include-tasks --only-failed --all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors delete"|"connectors rm")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "connectors prune")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "tasks ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "list describe restart kill stacks" -- "$cur"))
            fi
            ;;
        "tasks list"|"tasks ls")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "tasks describe"|"tasks show")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names tasks
            fi
            ;;
        "tasks restart")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --wait --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names tasks
            fi
            ;;
        "tasks kill")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--force --dry-run --exit-code --parallel --max-failures --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "tasks stacks")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "get diff export history reset alter seek lag undo import copy orphans" -- "$cur"))
            fi
            ;;
        "offsets get")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets diff")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f --backup $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets export")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets history")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets reset")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--partition -p --stop --resume --wait --no-backup --all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets alter")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f --set -s --stop --resume --wait --no-backup --force --dry-run --exit-code --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets seek")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--to-start --to-earliest --to-latest --shift-by --to-datetime --partition -p --stop --resume --wait --no-backup --all --regex -e --selector -l --state --type --class --worker --failed --dry-run --exit-code --parallel --max-failures --allow-empty --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets lag")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --regex -e --selector -l --state --type --class --worker --failed $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets undo")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--stop --resume --wait --no-backup --force --dry-run --exit-code --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "offsets import")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f --stop --resume --wait --no-backup --force --dry-run --exit-code --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets copy")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--to-context --stop --resume --wait --no-backup --force --dry-run --exit-code --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else _pyconnect_names connectors
            fi
            ;;
        "offsets orphans")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--topic -t --sink --file -f --all --sink-groups --no-backup --dry-run --exit-code --parallel --max-failures --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "list export purge" -- "$cur"))
            fi
            ;;
        "topics ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "read" -- "$cur"))
            fi
            ;;
        "topics read")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--max --partition --from-beginning $options" -- "$cur"))
            fi
            ;;
        "acls ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "check explain generate" -- "$cur"))
            fi
            ;;
        "acls check")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--phase --connector --worker-config --worker-property --principal --topic --host --super-user --allow-everyone --probe --all --accept-unknown $options" -- "$cur"))
            fi
            ;;
        "acls explain")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--phase --worker-config --worker-property --principal --topic $options" -- "$cur"))
            fi
            ;;
        "acls generate")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--phase --connector --worker-config --worker-property --principal --topic --host --super-user --allow-everyone --probe --all --format --remove --explicit-describe --prefixed --strimzi-cluster $options" -- "$cur"))
            fi
            ;;
        "transactions ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "list describe find-hanging abort" -- "$cur"))
            fi
            ;;
        "transactions list"|"transactions ls")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--connector --group-id --open --all-ids $options" -- "$cur"))
            fi
            ;;
        "transactions describe"|"transactions show")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--group-id $options" -- "$cur"))
            fi
            ;;
        "transactions find-hanging")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--connector --topic --group-id --min-idle $options" -- "$cur"))
            fi
            ;;
        "transactions abort")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--min-idle --dry-run --exit-code --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "plugins ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "test list describe validate" -- "$cur"))
            fi
            ;;
        "plugins test")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f --plugin-path --for $options" -- "$cur"))
            else _pyconnect_names plugins
            fi
            ;;
        "plugins list"|"plugins ls")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all --search $options" -- "$cur"))
            fi
            ;;
        "plugins describe"|"plugins show")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--search --version $options" -- "$cur"))
            else _pyconnect_names plugins
            fi
            ;;
        "plugins validate")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--file -f $options" -- "$cur"))
            fi
            ;;
        "loggers ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "list get set" -- "$cur"))
            fi
            ;;
        "loggers list"|"loggers ls")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            fi
            ;;
        "loggers get")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names loggers
            fi
            ;;
        "loggers set")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--scope --for $options" -- "$cur"))
            else _pyconnect_names loggers
            fi
            ;;
        "reconcile ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "ranges transactions sequence duplicates offsets source-topic topic-topic topic-sink completeness" -- "$cur"))
            fi
            ;;
        "reconcile ranges")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--connector --against --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "reconcile transactions")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--connector --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "reconcile sequence")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--connector --sequence --group --unordered --uncommitted --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "reconcile duplicates")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--connector --identity --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "reconcile offsets")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--offsets-topic --config-topic --status-topic --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "reconcile source-topic")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--files --format --table --jdbc-url --jdbc-properties --topic --value --column --upsert --allow-duplicates --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "reconcile topic-topic")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--right-bootstrap --right-properties --value --column --upsert --allow-duplicates --ordered --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "reconcile topic-sink")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--files --format --table --jdbc-url --jdbc-properties --topic --value --column --upsert --allow-duplicates --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "reconcile completeness")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--tier --bucket-minutes --report --spec --ranges --since --findings --hide-keys --fail-unparsable --print-spec --registry --registry-properties --master --remote --conf --packages --jars --properties-file --lock --jitter --deadline --summary-json --textfile $options" -- "$cur"))
            fi
            ;;
        "upgrade ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--phase --plan --worker --resume --full-stop --direct --hard --cleanup --inventory --worker-config --group --settle --step-timeout --accept-unknown --declared --strict $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "status" -- "$cur"))
            fi
            ;;
        "upgrade status")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            fi
            ;;
        "agent ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "status drain doctor" -- "$cur"))
            fi
            ;;
        "agent status")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all-workers --tasks $options" -- "$cur"))
            fi
            ;;
        "agent drain")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--undrain --no-wait $options" -- "$cur"))
            fi
            ;;
        "agent doctor")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all-workers $options" -- "$cur"))
            fi
            ;;
        "health ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--all-workers $options" -- "$cur"))
            fi
            ;;
        "info ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            fi
            ;;
        "doctor ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            fi
            ;;
        "context ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "list current use set show delete test import" -- "$cur"))
            fi
            ;;
        "context list"|"context ls")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            fi
            ;;
        "context current")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            fi
            ;;
        "context use")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names contexts
            fi
            ;;
        "context set")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--use --description $options" -- "$cur"))
            else _pyconnect_names contexts
            fi
            ;;
        "context show")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names contexts
            fi
            ;;
        "context delete"|"context rm")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names contexts
            fi
            ;;
        "context test")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else _pyconnect_names contexts
            fi
            ;;
        "context import")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--force $options" -- "$cur"))
            else _pyconnect_names contexts
            fi
            ;;
        "config ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "view" -- "$cur"))
            fi
            ;;
        "config view")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            fi
            ;;
        "sandbox ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "up down status logs demo" -- "$cur"))
            fi
            ;;
        "sandbox up")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--name --port --data-dir --acl --sasl --agent --java-worker --use --kafka-dir $options" -- "$cur"))
            fi
            ;;
        "sandbox down")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--name --all --remove-data $options" -- "$cur"))
            fi
            ;;
        "sandbox status")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--name $options" -- "$cur"))
            fi
            ;;
        "sandbox logs")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--name --server --lines -n --follow -f $options" -- "$cur"))
            fi
            ;;
        "sandbox demo")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W "--name $options" -- "$cur"))
            fi
            ;;
        "completion ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "bash zsh fish" -- "$cur"))
            fi
            ;;
        "version ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            fi
            ;;
        "help ")
            if [[ $cur == -* ]]; then
                COMPREPLY=($(compgen -W " $options" -- "$cur"))
            else COMPREPLY=($(compgen -W "exit-codes contexts selectors offsets output cron" -- "$cur"))
            fi
            ;;
    esac
}

complete -F _pyconnect pyconnect
