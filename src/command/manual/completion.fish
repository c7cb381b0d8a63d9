# the words before the cursor that are no options and no options' values
function __gpulab_words
    set -l value 0
    set -l words
    for token in (commandline -opc)[2..-1]
        if test $value = 1
            set value 0
        else if contains -- "$words[1] $token" $__gpulab_takes_value
            set value 1
        else if not string match -q -- '-*' $token
            set -a words $token
        end
    end
    string join \n -- $words
end

# whether they are just these, or (with a + behind them) begin with these
function __gpulab_at
    set -l words (__gpulab_words)
    set -l wanted $argv
    if test "$wanted[-1]" = +
        set -e wanted[-1]
        set words $words[1..(count $wanted)]
    end
    test "$words" = "$wanted"
end

# paths as values of a key
function __gpulab_paths
    set -l token (commandline -ct)
    string match -q -- "$argv[1]=*" $token; or return
    for path in (__fish_complete_path (string replace -- "$argv[1]=" '' $token))
        echo "$argv[1]=$path"
    end
end

complete -c gpulab -f
