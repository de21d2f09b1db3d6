/** Completion in the real shells: a line is typed, TAB is pressed, and the shell says what its line is then. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace, type Place, runCli, start } from '../support/index.js'

const has = (command: string, words: readonly string[] = ['--version']): boolean => {
  try {
    execFileSync(command, words, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** A home with the script of a shell, and a folder with files, and nothing that the script may read. */
async function furnished(shell: string): Promise<Place> {
  const place = createPlace().with({ TERM: 'dumb', LC_ALL: 'C.UTF-8' })
  writeFileSync(join(place.home, '_rushes'), (await runCli(['completion', shell])).stdout)
  mkdirSync(join(place.folder, 'sub folder'))
  for (const name of ['plain.png', 'shots.yaml']) writeFileSync(join(place.folder, name), '')
  return place
}

/** What is typed, and the line after TAB. */
const LINES: readonly (readonly [string, string])[] = [
  ['rushes ba', 'rushes batch '],
  ['rushes run vi', 'rushes run video '],
  ['rushes --json admin key cr', 'rushes --json admin key create '],
  ['rushes help com', 'rushes help completion '],
  ['rushes completion ba', 'rushes completion bash '],
  ['rushes run image --asp', 'rushes run image --aspect-ratio '],
  ['rushes run image "a fox" --overw', 'rushes run image "a fox" --overwrite '],
  ['rushes run image --aspect-ratio 16:', 'rushes run image --aspect-ratio 16:9 '],
  ['rushes run image --aspect-ratio=16:', 'rushes run image --aspect-ratio=16:9 '],
  ['rushes run image "two words" --quality=h', 'rushes run image "two words" --quality=high '],
  ['rushes run video -i plai', 'rushes run video -i plain.png '],
  ['rushes run video -i su', 'rushes run video -i sub\\ folder/'],
  ['rushes run image --output=plai', 'rushes run image --output=plain.png '],
  ['rushes batch sho', 'rushes batch shots.yaml '],
  ['echo hi | RUSHES_TIMEOUT=1m rushes stat', 'echo hi | RUSHES_TIMEOUT=1m rushes status '],
]

const KEYS = { tab: '\t', show: '\u0018l' }

/** Each line in turn, in one shell on a terminal that `script` makes. */
async function typed(
  place: Place,
  shell: string,
  lines = LINES,
): Promise<readonly (readonly [string, string])[]> {
  const running = start(place, ['-qec', shell, '/dev/null'], { command: 'script' })
  await running.prints('stdout', /READY/)
  const seen: (readonly [string, string])[] = []
  for (const [line] of lines) {
    const from = running.printed.stdout.length
    running.stdin.write(`${line}${KEYS.tab}${KEYS.show}`)
    const [, after = ''] = await running.prints('stdout', new RegExp(`^[\\s\\S]{${from}}[\\s\\S]*LINE<(.*)>`))
    seen.push([line, after])
  }
  running.stdin.write('exit\r')
  await running.ended
  return seen
}

const BASH = `PS1=''
source ~/_rushes
show() { printf 'LINE<%s>\\n' "$READLINE_LINE"; READLINE_LINE='' READLINE_POINT=0; }
bind -x '"\\C-xl": show'
bind 'set bell-style none'
echo READY
`

it.skipIf(!has('script')).concurrent('bash completes a line with the script of completion bash', async () => {
  const place = await furnished('bash')
  writeFileSync(join(place.home, 'rc'), BASH)
  expect(await typed(place, `bash --rcfile ${place.home}/rc -i`)).toEqual(LINES)
})

const ZSH = (load: string) => `PS1=''
${load}
show() { print -r -- "LINE<$BUFFER>"; BUFFER= }
zle -N show
bindkey '^Xl' show
unsetopt LIST_BEEP
echo READY
`

it.skipIf(!has('zsh') || !has('script')).concurrent.each([
  ['sourced', LINES, 'autoload -Uz compinit; compinit -u -D; source ~/_rushes'],
  [
    'in a folder of functions',
    LINES.slice(0, 3),
    'mkdir ~/functions; cp ~/_rushes ~/functions; fpath=(~/functions $fpath); autoload -Uz compinit; compinit -u -D',
  ],
])('zsh completes a line with the script of completion zsh, %s', async (_, lines, load) => {
  const place = await furnished('zsh')
  writeFileSync(join(place.home, '.zshrc'), ZSH(load))
  expect(await typed(place.with({ ZDOTDIR: place.home }), 'zsh -i', lines)).toEqual(lines)
})

/** fish is asked without a terminal; it says what would stand in the place of the last word. */
it.skipIf(!has('fish')).concurrent('fish completes a line with the script of completion fish', async () => {
  const place = await furnished('fish')
  const script = [
    'source ~/_rushes',
    ...LINES.map(([line]) => `echo LINE"$(complete -C '${line}' | string split -f1 \\t | string join '|')"`),
  ].join('\n')
  const { stdout, stderr } = await start(place, ['--no-config', '-c', script], { command: 'fish' }).ended
  expect(stderr).toBe('')
  const answers = stdout.trimEnd().split('\n')
  const wanted = LINES.map(([line, after]) => (after === line ? 'LINE' : `LINE${lastWord(after)}`))
  expect(answers).toEqual(wanted)
})

/** As it is before fish quotes it. */
function lastWord(line: string): string {
  const [, word = ''] = /((?:\\ |"[^"]*"|[^ ])+) ?$/.exec(line) ?? []
  return word.replace(/\\(.)/g, '$1').replaceAll('"', '')
}
