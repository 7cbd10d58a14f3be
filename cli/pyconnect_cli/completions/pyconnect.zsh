#compdef pyconnect
# zsh completion of pyconnect. All offers come from `pyconnect __complete`.

_pyconnect() {
    local -a described
    local offer
    for offer in "${(@f)$(${words[1]} __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        case $offer in
            :files*) [[ $PREFIX == --*=* ]] && compset -P '*='; _files; return ;;
            ?*) described+=("${${offer%%$'\t'*}//:/\\:}:${offer#*$'\t'}") ;;
        esac
    done
    _describe -V pyconnect described
}

_pyconnect "$@"
