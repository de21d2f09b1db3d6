#compdef rushes
# Completion of rushes for zsh. Written by: rushes completion zsh

_rushes() {
  local program=${(Q)words[1]} line paths=none lead=''
  local -a lines found
  [[ $program == */* ]] || program=rushes
  lines=("${(@f)$(${~program} __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)}")
  for line in "${lines[@]}"; do
    if [[ $line == :* ]]; then
      paths=${${line#:}%% *} lead=${line#* }
    elif [[ -n $line ]]; then
      # A colon ends the value, unless it is escaped.
      local value=${line%%$'\t'*}
      local about=${line#*$'\t'}
      # zsh would show `--` before an empty description.
      found+=("${value//:/\\:}${about:+:$about}")
    fi
  done

  local answer=1
  if (($#found)); then _describe -V -t values 'rushes' found && answer=0; fi
  [[ $paths == none ]] && return answer
  compset -P "${(b)lead}"
  if [[ $paths == folders ]]; then _path_files -/ && answer=0; else _files && answer=0; fi
  return answer
}

if [[ ${funcstack[1]} == _rushes ]]; then _rushes "$@"; else compdef _rushes rushes; fi
