# bash completion of pyconnect. All offers come from `pyconnect __complete`.

_pyconnect() {
    # The line itself is read: bash breaks COMP_WORDS at `:` and `=`.
    local line=${COMP_LINE:0:COMP_POINT} offer word quoted index
    local -a words=()
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local current=${words[${#words[@]} - 1]}
    COMPREPLY=()
    while IFS= read -r offer; do
        word=${offer%%$'\t'*}
        if [[ $word == :files ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "${current#--*=}")
            return
        fi
        # A name is data of the cluster: `compgen -W` would run a `$(command)` inside it.
        printf -v quoted %q "$word"
        [[ $word == "$current"* || $quoted == "$current"* ]] && COMPREPLY+=("$quoted")
    done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    # bash replaces only what stands after the last of these characters.
    local kept=${current%"${current##*[:=]}"}
    if [[ -n $kept && $COMP_WORDBREAKS == *:* ]]; then
        for index in "${!COMPREPLY[@]}"; do COMPREPLY[index]=${COMPREPLY[index]#"$kept"}; done
    fi
}

complete -F _pyconnect pyconnect
