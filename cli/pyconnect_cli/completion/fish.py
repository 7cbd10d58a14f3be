"""The completion file for fish."""

from __future__ import annotations

from pyconnect_cli.completion.tree import NounNode, OptionNode, global_options, verb_aliases

HEADER = """\
# fish completion of pyconnect; made by `pyconnect completion fish`.
# Nouns, verbs and options are static; names come from `pyconnect __complete` (cached, 300 ms).

function __pyconnect_names
    set -l given
    set -l words (commandline -opc)
    for index in (seq (count $words))
        switch $words[$index]
            case --url --context --config
                set -a given $words[$index] $words[(math $index + 1)]
            case '--url=*' '--context=*' '--config=*'
                set -a given $words[$index]
        end
    end
    pyconnect __complete $argv[1] $given 2>/dev/null
end

complete -c pyconnect -f
"""


def fish_completion(tree: tuple[NounNode, ...]) -> str:
    """Return the whole file."""
    lines = [HEADER]
    nouns = " ".join(sorted(word for noun in tree for word in (noun.name, *noun.aliases)))
    no_noun = f"not __fish_seen_subcommand_from {nouns}"
    lines += [_option(option, None) for option in global_options()]
    for noun in tree:
        lines.append(f"complete -c pyconnect -n '{no_noun}' -a {noun.name} -d {_quoted(noun.help)}")
        seen = f"__fish_seen_subcommand_from {' '.join((noun.name, *noun.aliases))}"
        lines += [_option(option, seen) for option in noun.options]
        lines += [f"complete -c pyconnect -n '{seen}' -a {word}" for word in noun.choices]
        aliases = verb_aliases(noun)
        verbs = " ".join(sorted([*(verb.name for verb in noun.verbs), *aliases]))
        for verb in noun.verbs:
            without = f"{seen}; and not __fish_seen_subcommand_from {verbs}"
            help_text = _quoted(verb.help)
            lines.append(f"complete -c pyconnect -n '{without}' -a {verb.name} -d {help_text}")
            words = [verb.name, *(a for a, target in aliases.items() if target == verb.name)]
            within = f"{seen}; and __fish_seen_subcommand_from {' '.join(words)}"
            if verb.names:
                names = f"(__pyconnect_names {verb.names})"
                lines.append(f"complete -c pyconnect -n '{within}' -a '{names}'")
            if verb.choices:
                chosen = " ".join(verb.choices)
                lines.append(
                    f"complete -c pyconnect -n '{within}; and not __fish_seen_subcommand_from"
                    f" {chosen}' -a '{chosen}'"
                )
            lines += [_option(option, within) for option in verb.options]
    return "\n".join([*lines, ""])


def _option(option: OptionNode, condition: str | None) -> str:
    parts = ["complete -c pyconnect"]
    if condition:
        parts.append(f"-n '{condition}'")
    for flag in option.flags:
        name = flag.lstrip("-")
        parts.append(f"-l {name}" if flag.startswith("--") else f"-s {name}")
    if option.takes_value:
        parts.append("-r" if option.files else "-x")
        if option.choices:
            parts.append(f"-a '{' '.join(option.choices)}'")
        elif option.names:
            parts.append(f"-a '(__pyconnect_names {option.names})'")
        elif option.files:
            parts.append("-F")
    return " ".join([*parts, "-d", _quoted(option.help)])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
