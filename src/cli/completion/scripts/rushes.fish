# Completion of rushes for fish. Written by: rushes completion fish

function __rushes_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    string match -q '*/*' -- $program; or set program rushes
    set program (string replace -r '^~/' "$HOME/" -- $program)
    # A quote that is still open is none of the word's.
    set word (string replace -r '^["\']' '' -- "$word")
    for line in ($program __complete $words "$word" 2>/dev/null)
        if not string match -q ':*' -- $line
            echo $line
            continue
        end
        set -l lead (string replace -r '^:\w+ ?' '' -- $line)
        set -l stem (string sub -s (math (string length -- "$lead") + 1) -- "$word")
        switch $line
            case ':files*'
                __rushes_paths "$lead" (complete -C "'' $stem")
            case ':folders*'
                __rushes_paths "$lead" (__fish_complete_directories "$stem" '')
        end
    end
end

function __rushes_paths --argument-names lead
    for path in $argv[2..-1]
        echo $lead(string replace -r '\t.*' '' -- $path)
    end
end

complete -c rushes -e
complete -c rushes -k -f -a '(__rushes_complete)'
