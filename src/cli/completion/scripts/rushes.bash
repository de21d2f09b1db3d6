# Completion of rushes for bash, from 3.2 on. Written by: rushes completion bash

_rushes() {
  # bash cuts words at = : and @ too: what has no space between belongs together.
  local line=${COMP_LINE:0:COMP_POINT} words=() n=0 part='' glued i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    part=${COMP_WORDS[i]} glued=yes
    while [[ $line == [[:space:]]* ]]; do line=${line#?} glued=''; done
    if ((i == COMP_CWORD)); then part=$line; fi
    line=${line#"$part"}
    if ((n > 0)) && [[ $glued ]]; then words[n-1]+=$part; else words[n++]=$part; fi
  done

  # Only $2 is replaced by the answer: what stands before it in the same word is kept.
  local word=${words[n-1]} quote='' value
  if [[ $part == [\'\"]* ]]; then
    quote=yes word=${word%"$part"}${part#?}
  fi
  local kept=${word%"$2"}
  word=$kept${2//\\/}
  for ((i = 1; i < n - 1; i++)); do
    value=${words[i]}
    case $value in
      \"*\" | \'*\') value=${value#?} words[i]=${value%?} ;;
      *) words[i]=${value//\\/} ;;
    esac
  done

  local program=${words[0]} paths=none lead=''
  case $program in
    \~/*) program=$HOME/${program#\~/} ;;
    */*) ;;
    *) program=rushes ;;
  esac
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :* ]]; then
      paths=${line#:} lead=${line#* } paths=${paths%% *}
      continue
    fi
    value=${line%%$'\t'*} value=${value#"$kept"}
    if [[ ! $quote ]]; then printf -v value %q "$value"; fi
    COMPREPLY[${#COMPREPLY[@]}]=$value
  done < <("$program" __complete "${words[@]:1:n-2}" "$word" 2> /dev/null)

  local option=default action=file
  case $paths in
    files) ;;
    folders) option=dirnames action=directory ;;
    *) return ;;
  esac
  # Readline's own completion of paths knows ~, quotes and folders, but takes all of $2 for a path.
  lead=${lead#"$kept"}
  if ((${#COMPREPLY[@]} == 0)) && [[ ! $lead ]] && compopt -o "$option" 2> /dev/null; then return; fi
  while IFS= read -r value; do
    if [[ -d $value ]]; then value+=/; compopt -o nospace 2> /dev/null; fi
    if [[ ! $quote ]]; then printf -v value %q "$value"; fi
    COMPREPLY[${#COMPREPLY[@]}]=$lead$value
  done < <(compgen -A "$action" -- "${word#"$kept$lead"}")
}

complete -F _rushes rushes
