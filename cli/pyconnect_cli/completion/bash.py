"""The completion file for bash."""

from __future__ import annotations

from pyconnect_cli.completion.tree import NounNode, OptionNode, global_options, verb_aliases

# Words are read from the line and not from COMP_WORDS, which bash breaks at `:` and `=`. Names are
# data of the cluster: `compgen -W` would run a `$(command)` inside one, so they are compared here
# and quoted.
HEADER = """\
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
"""
FOOTER = """\
}

complete -F _pyconnect pyconnect
"""


def bash_completion(tree: tuple[NounNode, ...]) -> str:
    """Return the whole file."""
    everywhere = global_options()
    lines = [HEADER.rstrip("\n")]
    lines += _find_words(tree, everywhere)
    lines += _option_values(tree, everywhere)
    lines += _words_of_command(tree, everywhere)
    return "\n".join([*lines, FOOTER])


def _find_words(tree: tuple[NounNode, ...], everywhere: tuple[OptionNode, ...]) -> list[str]:
    """Find noun and verb among the words, leaving out options and their values."""
    of_nouns = (option for noun in tree for option in noun.options)
    of_verbs = (option for noun in tree for verb in noun.verbs for option in verb.options)
    options = [*everywhere, *of_nouns, *of_verbs]
    valued = sorted({f for option in options if option.takes_value for f in option.flags})
    nouns = "|".join(sorted({word for noun in tree for word in (noun.name, *noun.aliases)}))
    return [
        "    for ((index = 1; index < ${#words[@]} - 1; index++)); do",
        "        word=${words[index]}",
        "        if ((skip)); then skip=0; continue; fi",
        "        case $word in",
        f"            {'|'.join(valued)}) skip=1 ;;",
        "            -*) ;;",
        "            *)",
        "                if [[ -z $noun ]]; then noun=$word",
        "                elif [[ -z $verb ]]; then verb=$word; fi",
        "                ;;",
        "        esac",
        "    done",
        "    case $noun in",
        *(f"        {'|'.join(n.aliases)}) noun={n.name} ;;" for n in tree if n.aliases),
        "    esac",
        f"    # nouns: {nouns}",
    ]


def _option_values(tree: tuple[NounNode, ...], everywhere: tuple[OptionNode, ...]) -> list[str]:
    lines = ['    case "$noun $verb $previous" in']
    for noun in tree:
        for option in noun.options:
            lines += _value_case(f"{noun.name} ", option)
        for verb in noun.verbs:
            for option in verb.options:
                lines += _value_case(f"{noun.name} {verb.name}", option)
    lines += ["    esac", "    case $previous in"]
    for option in everywhere:
        pattern = "|".join(option.flags)
        if option.takes_value:
            lines.append(f"        {pattern}) {_value_reply(option)}; return ;;")
    return [*lines, "    esac"]


def _value_case(path: str, option: OptionNode) -> list[str]:
    if not option.takes_value:
        return []
    pattern = "|".join(f'"{path} {flag}"' for flag in option.flags)
    return [f"        {pattern}) {_value_reply(option)}; return ;;"]


def _value_reply(option: OptionNode) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$cur"))'
    if option.names:
        return f"_pyconnect_names {option.names}"
    if option.files:
        return "_pyconnect_files"
    return ":"


def _words_of_command(tree: tuple[NounNode, ...], everywhere: tuple[OptionNode, ...]) -> list[str]:
    shared = " ".join(flag for option in everywhere for flag in option.flags)
    nouns = " ".join(noun.name for noun in tree)
    lines = [
        f'    local options="{shared} --help"',
        '    case "$noun $verb" in',
        '        " ")',
        '            if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$cur"))',
        f'            else COMPREPLY=($(compgen -W "{nouns}" -- "$cur")); fi',
        "            ;;",
    ]
    for noun in tree:
        own = " ".join(flag for option in noun.options for flag in option.flags)
        words = " ".join([verb.name for verb in noun.verbs] or noun.choices)
        lines += _command_case(f'"{noun.name} "', own, f'"{words}"' if words else "", "")
        for verb in noun.verbs:
            aliases = [a for a, target in verb_aliases(noun).items() if target == verb.name]
            names = [verb.name, *aliases]
            pattern = "|".join(f'"{noun.name} {name}"' for name in names)
            flags = " ".join(flag for option in verb.options for flag in option.flags)
            words = f'"{" ".join(verb.choices)}"' if verb.choices else ""
            lines += _command_case(pattern, flags, words, verb.names)
    return [*lines, "    esac"]


def _command_case(pattern: str, flags: str, words: str, names: str) -> list[str]:
    lines = [
        f"        {pattern})",
        "            if [[ $cur == -* ]]; then",
        f'                COMPREPLY=($(compgen -W "{flags} $options" -- "$cur"))',
    ]
    if words:
        lines.append(f'            else COMPREPLY=($(compgen -W {words} -- "$cur"))')
    elif names:
        lines.append(f"            else _pyconnect_names {names}")
    return [*lines, "            fi", "            ;;"]
