/** `rushes completion`: prints a static script of a shell, made from the table of commands: commands, flags and their values. */
import type { Command } from 'commander'
import { EXIT } from '../../errors.js'
import { orList } from '../../protocol/text.js'
import type { CommandEnvironment } from '../context/context.js'
import { choiceArgument } from '../flags/values.js'

/** What may follow the words of a command: a subcommand, a value of its argument, or a flag. */
interface Row {
  /** The words of the command without `rushes`: `run image`. */
  readonly path: string
  readonly word: string
  readonly short: string | undefined
  readonly takesValue: boolean
  readonly values: readonly string[]
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const

type Shell = keyof typeof SCRIPTS

const SHELLS = Object.keys(SCRIPTS) as readonly Shell[]

export function register(command: Command, { act, program }: CommandEnvironment): void {
  command.addArgument(choiceArgument('<shell>', `Shell: ${orList(SHELLS)}`, SHELLS))
  act(command, async ({ out }, _flags: object, shell: Shell) => {
    out.line(SCRIPTS[shell](rowsOf(await program())).trimEnd())
    return EXIT.ok
  })
}

function rowsOf(command: Command, path = ''): readonly Row[] {
  const plain = { short: undefined, takesValue: false, values: [] }
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  return [
    ...[...command.commands.map((child) => child.name()), ...choices].map((word) => ({
      ...plain,
      path,
      word,
    })),
    ...command
      .createHelp()
      .visibleOptions(command)
      .map(({ long, short, required, argChoices }) => ({
        ...{ path, word: long ?? '', short, takesValue: required, values: argChoices ?? [] },
      })),
    ...command.commands.flatMap((child) => rowsOf(child, `${path} ${child.name()}`.trim())),
  ]
}

/** No word has a quote or a backslash. */
const quoted = (text: string): string => `'${text}'`

const isFlag = ({ word }: Row): boolean => word.startsWith('-')

/** The branches of a `case` for bash and zsh: the candidates after each path, and the values of each flag. */
function branches(rows: readonly Row[]) {
  const paths = [...new Set(rows.map(({ path }) => path))]
  const branch = (key: string, found: readonly string[]) =>
    `    (${quoted(key)}) found=(${found.map(quoted).join(' ')}) ;;`
  const after = (path: string, wanted: (row: Row) => boolean) =>
    branch(
      path,
      rows.flatMap((row) => (row.path === path && wanted(row) ? row.word : [])),
    )
  const valued = rows.filter(({ values }) => values.length > 0)
  return {
    // After `help`, the words are again those of the program.
    commands: paths
      .filter((path) => path !== '' && path !== 'help')
      .map((path) => quoted(path.includes(' ') ? path : ` ${path}`))
      .join('|'),
    words: paths.map((path) => after(path, (row) => !isFlag(row))).join('\n'),
    flags: paths.map((path) => after(path, isFlag)).join('\n'),
    values: valued
      .flatMap(({ path, word, short, values }) =>
        [word, ...(short === undefined ? [] : [short])].map((flag) => branch(`${path} ${flag}`, values)),
      )
      .join('\n'),
  }
}

function bashScript(rows: readonly Row[]): string {
  const { commands, words, flags, values } = branches(rows)
  return `# Completion of rushes for bash, from 3.2 on. Written by: rushes completion bash
_rushes() {
  local words at='' word flag found=()
  read -ra words <<< "\${COMP_LINE:0:COMP_POINT}."
  for word in "\${words[@]:1:\${#words[@]}-2}"; do
    case "$at $word" in
      ${commands}) at="\${at:+$at }$word" ;;
    esac
  done
  word=\${words[\${#words[@]}-1]%.} flag=\${words[\${#words[@]}-2]}
  if [[ $word == --*=* ]]; then flag=\${word%%=*} word=\${word#*=}; fi
  case "$at $flag" in
${values}
    (*) if [[ $word == -* ]]; then case $at in
${flags}
    esac; else case $at in
${words}
    esac; fi ;;
  esac
  # Readline replaces only $2, which begins after the last = or : of the word.
  COMPREPLY=($(compgen -W "\${found[*]}" -- "$word"))
  COMPREPLY=("\${COMPREPLY[@]#"\${word%"$2"}"}")
}
complete -o default -F _rushes rushes
`
}

function zshScript(rows: readonly Row[]): string {
  const { commands, words, flags, values } = branches(rows)
  return `#compdef rushes
# Completion of rushes for zsh. Written by: rushes completion zsh
_rushes() {
  local at='' word flag=\${(Q)words[CURRENT-1]}
  local -a found
  for word in "\${(@Q)words[2,CURRENT-1]}"; do
    case "$at $word" in
      (${commands}) at="\${at:+$at }$word" ;;
    esac
  done
  if [[ $PREFIX == --*=* ]]; then flag=\${PREFIX%%=*}; compset -P '*='; fi
  case "$at $flag" in
${values}
    (*) if [[ $PREFIX == -* ]]; then case $at in
${flags}
    esac; else case $at in
${words}
    esac; fi ;;
  esac
  (($#found)) && compadd -V values -a found || _files
}
if [[ \${funcstack[1]} == _rushes ]]; then _rushes "$@"; else compdef _rushes rushes; fi
`
}

function fishScript(rows: readonly Row[]): string {
  const { commands } = branches(rows)
  const lines = rows.map((row) => {
    const { path, word, short, takesValue, values } = row
    const value = values.length > 0 ? ` -x -a ${quoted(values.join(' '))}` : takesValue ? ' -r' : ''
    const names = `-l ${word.slice(2)}${short === undefined ? '' : ` -s ${short.slice(1)}`}${value}`
    const what = isFlag(row) ? names : `-f -a ${word}`
    return `complete -c rushes -n ${quoted(`__rushes_at "${path}"`)} ${what}`
  })
  return `# Completion of rushes for fish. Written by: rushes completion fish
function __rushes_at
    set -l at ''
    for word in (commandline -opc)[2..]
        switch "$at $word"
            case ${commands.replaceAll('|', ' ')}
                set at (string trim -- "$at $word")
        end
    end
    test "$at" = "$argv[1]"
end
complete -c rushes -e
${lines.join('\n')}
`
}
