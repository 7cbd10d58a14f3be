"""The completion file for zsh."""

from __future__ import annotations

from pyconnect_cli.completion.tree import NounNode, OptionNode, global_options, verb_aliases

HEADER = """\
#compdef pyconnect
# zsh completion of pyconnect; made by `pyconnect completion zsh`.
# Nouns, verbs and options are static; names come from `pyconnect __complete` (cached, 300 ms).

_pyconnect_names() {
    local -a given names
    local index
    for ((index = 2; index < ${#typed}; index++)); do
        case $typed[index] in
            --url|--context|--config) given+=("$typed[index]" "$typed[index+1]") ;;
            --url=*|--context=*|--config=*) given+=("$typed[index]") ;;
        esac
    done
    # What is asked for comes last, after options for compadd.
    names=("${(@f)$(pyconnect __complete ${@[-1]} $given 2>/dev/null)}")
    compadd "${@[1,-2]}" -a names
}

_pyconnect_words() { local -a found; found=("$@"); _describe -t words word found }
"""


def zsh_completion(tree: tuple[NounNode, ...]) -> str:
    """Return the whole file."""
    lines = [HEADER, "_pyconnect() {", "    local context state state_descr line"]
    lines += ["    typeset -A opt_args", '    local -a everywhere typed=("${words[@]}")']
    lines += ["    everywhere=("]
    lines += [f"        {_argument(option)}" for option in global_options()]
    lines += ["    )"]
    lines += ["    _arguments -C $everywhere '1:noun:->noun' '*:::rest:->rest' && return", ""]
    lines += ["    case $state in", "        noun)", "            _pyconnect_words \\"]
    lines += [_described(noun.name, noun.help) for noun in tree]
    lines += ["            ;;", "        rest)", "            case $line[1] in"]
    for noun in tree:
        lines += _noun(noun)
    lines += ["            esac", "            ;;", "    esac", "}", "", '_pyconnect "$@"', ""]
    return "\n".join(lines).replace(" \\\n            ;;", "\n            ;;")


def _noun(noun: NounNode) -> list[str]:
    pattern = "|".join((noun.name, *noun.aliases))
    lines = [f"                {pattern})"]
    if not noun.verbs:
        own = " ".join(_argument(option) for option in noun.options)
        values = f" '1:topic:({' '.join(noun.choices)})'" if noun.choices else ""
        # `_arguments` takes the first word for the command's name.
        lines.append('                    words=(pyconnect "${words[@]}"); ((CURRENT++))')
        lines.append(f"                    _arguments $everywhere {own}{values}")
        return [*lines, "                    ;;"]
    if noun.options:
        own = " ".join(_argument(option) for option in noun.options)
        lines.append("                    if [[ $words[1] == -* ]]; then")
        lines.append('                        words=(pyconnect "${words[@]}"); ((CURRENT++))')
        lines.append(f"                        _arguments $everywhere {own}")
        lines += ["                        return", "                    fi"]
    lines.append("                    if ((CURRENT == 1)); then")
    lines.append("                        _pyconnect_words \\")
    lines += [_described(verb.name, verb.help) for verb in noun.verbs]
    lines[-1] = lines[-1].removesuffix(" \\")
    lines += ["                        return", "                    fi"]
    lines.append("                    case $words[1] in")
    aliases = verb_aliases(noun)
    for verb in noun.verbs:
        words = [verb.name, *(a for a, target in aliases.items() if target == verb.name)]
        names = f"'*:name:_pyconnect_names {verb.names}'" if verb.names else ""
        if verb.choices:
            names = f"'1:verb:({' '.join(verb.choices)})'"
        own = " ".join(_argument(option) for option in verb.options)
        call = " ".join(part for part in ("_arguments $everywhere", own, names) if part)
        lines.append(f"                        {'|'.join(words)}) {call} ;;")
    return [*lines, "                    esac", "                    ;;"]


def _argument(option: OptionNode) -> str:
    value = ""
    if option.takes_value:
        action = ""
        if option.choices:
            action = f"({' '.join(option.choices)})"
        elif option.names:
            action = f"_pyconnect_names {option.names}"
        elif option.files:
            action = "_files"
        value = f":value:{action}"
    help_text = _escaped(option.help)
    if len(option.flags) == 1:
        return f"'{option.flags[0]}[{help_text}]{value}'"
    flags = ",".join(option.flags)
    return f"'({' '.join(option.flags)})'{{{flags}}}'[{help_text}]{value}'"


def _described(name: str, text: str) -> str:
    return f"                '{name}:{_escaped(text)}' \\"


def _escaped(text: str) -> str:
    for character in "[]:":
        text = text.replace(character, f"\\{character}")
    return text.replace("'", "'\\''")
