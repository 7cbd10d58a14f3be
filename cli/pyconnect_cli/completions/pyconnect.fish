# fish completion of pyconnect. All offers come from `pyconnect __complete`.

function __pyconnect_offers
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for offer in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        switch $offer
            case ':files*'
                __fish_complete_path (string replace -r '^--[^=]*=' '' -- "$current")
            case '*'
                echo $offer
        end
    end
end

complete -c pyconnect -f -a '(__pyconnect_offers)'
