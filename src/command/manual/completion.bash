_gpulab() {
    local line=${COMP_LINE:0:COMP_POINT} cur command='' word='' value='' prefix='' i
    local -a words
    COMPREPLY=()
    cur=${line##*[[:space:]]}
    read -ra words <<<"${line%"$cur"}"
    # the command, its first word, and the option that waits for a value
    for ((i = 1; i < ${#words[@]}; i++)); do
        if [[ -n $value ]]; then
            value=''
        elif [[ -z $command ]]; then
            command=${words[i]}
        elif _gpulab_takes_value "$command" "${words[i]}"; then
            value=${words[i]}
        elif [[ ${words[i]} != -* && -z $word ]]; then
            word=${words[i]}
        fi
    done
    if [[ -z $command ]]; then
        _gpulab_offer "$(_gpulab_commands)"
    elif [[ -n $value ]]; then
        _gpulab_value "$command" "$value"
    elif [[ $cur == --*=* ]]; then
        prefix=${cur%%=*}=
        _gpulab_value "$command" "${cur%%=*}"
    elif [[ $cur == -* ]]; then
        _gpulab_offer "$(_gpulab_options "$command")"
    elif [[ -z $word ]]; then
        _gpulab_offer "$(_gpulab_words "$command")"
        _gpulab_takes_path "$command" first && _gpulab_paths f
    elif [[ $cur == *=* ]]; then
        prefix=${cur%%=*}=
        _gpulab_value "$command $word" "${cur%%=*}"
        [[ ${#COMPREPLY[@]} = 0 ]] && _gpulab_takes_path "$command" later && _gpulab_paths f
    else
        _gpulab_offer "$(_gpulab_keys "$command" "$word")"
        _gpulab_takes_path "$command" later && _gpulab_paths f
    fi
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
    _gpulab_cut
}

# keeps those of the words that go on from what is typed
_gpulab_offer() {
    mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$1" -- "${cur#"$prefix"}")
}

# $1 is f for files, d for directories
_gpulab_paths() {
    local path
    compopt -o filenames 2>/dev/null
    while IFS='' read -r path; do
        COMPREPLY+=("$prefix$path")
    done < <(compgen -"$1" -- "${cur#"$prefix"}")
}

# bash has split the word at '=' and ':' and completes only the last piece
_gpulab_cut() {
    local breaks=${COMP_WORDBREAKS//[^=:]/} typed i
    [[ -n $breaks && $cur == *["$breaks"]* ]] || return 0
    typed=${cur%"${cur##*["$breaks"]}"}
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$typed"}
    done
}

complete -F _gpulab gpulab
