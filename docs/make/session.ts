// Records the picture of a terminal in the README: `npm run bench -- session` types the README's tour into a real shell in
// tmux, with the program in dist, and draws the screen as docs/session.svg. Needs tmux and bash, and a build.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const COLUMNS = 100
const PROMPT = '$ '
const DEADLINE_MS = 60_000

/** In a clone, npx finds the program itself. */
const NPX = '#!/bin/sh\nexec env npm_command=exec npm_lifecycle_event=npx "$@"\n'

interface Style {
  readonly colour: string
  readonly faint: boolean
  readonly bold: boolean
}

const PLAIN: Style = { colour: '#d8dbe2', faint: false, bold: false }
const COLOURS = ['#6b7280', '#ff7b72', '#7ee787', '#e3b341', '#79c0ff', '#d2a8ff', '#76e3ea', '#d8dbe2']

const [, tour = ''] =
  /^## One minute$[\s\S]*?^```sh\n([\s\S]*?)^```$/m.exec(readFileSync('README.md', 'utf8')) ?? []
const screen = await record(tour.trimEnd().split('\n'))
if (/\brk_\w{10}/.test(screen)) throw new Error('a key is on the screen')
writeFileSync('docs/session.svg', draw(screen.split('\n')))

/** Types each line when the shell shows its prompt, and returns the screen with its colours. */
async function record(lines: readonly string[]): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'rushes-session-'))
  const [home, work, bin] = [join(root, 'home'), join(root, 'work'), join(root, 'bin')]
  for (const folder of [home, work, bin]) mkdirSync(folder)
  const rushes = join(bin, 'rushes')
  writeFileSync(rushes, `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/rushes.cjs')}' "$@"\n`)
  chmodSync(rushes, 0o755)
  writeFileSync(join(bin, 'npx'), NPX, { mode: 0o755 })
  const tmux = (...words: string[]) =>
    execFileSync('tmux', ['-S', join(root, 'tmux'), '-f', '/dev/null', ...words], { encoding: 'utf8' })
  const env = {
    TERM: 'screen-256color',
    LANG: 'C.UTF-8',
    HOME: home,
    // Else bash writes it into the home while that is removed.
    HISTFILE: '/dev/null',
    PATH: [bin, dirname(process.execPath), process.env.PATH].join(':'),
    PS1: PROMPT,
  }
  const shell = Object.entries(env).map(([name, value]) => `'${name}=${value}'`)
  const bash = `exec env -i ${shell.join(' ')} bash --norc --noprofile`
  tmux('new-session', '-d', '-x', String(COLUMNS), '-y', '60', '-c', work, bash)
  try {
    for (const line of lines) {
      await promptShown(tmux)
      tmux('send-keys', '-l', line)
      tmux('send-keys', 'Enter')
    }
    await promptShown(tmux)
    return tmux('capture-pane', '-e', '-p').trimEnd().split('\n').slice(0, -1).join('\n')
  } finally {
    tmux('kill-server')
    rmSync(root, { recursive: true, force: true })
  }
}

/** Resolves when the last line is a prompt, or the prompt for the rest of a command. */
async function promptShown(tmux: (...words: string[]) => string): Promise<void> {
  const endAt = performance.now() + DEADLINE_MS
  // The typed line must reach the shell first.
  do await sleep(200)
  while (!/(^|\n)[$>]$/.test(tmux('capture-pane', '-p').trimEnd()) && performance.now() < endAt)
  if (performance.now() >= endAt) throw new Error(`no prompt: ${tmux('capture-pane', '-p')}`)
}

function draw(lines: readonly string[]): string {
  const [cell, row, edge, bar] = [8.4, 19, 16, 34]
  const [width, height] = [COLUMNS * cell + 2 * edge, lines.length * row + bar + edge]
  let style: Style = PLAIN
  const texts = lines.flatMap((line, at) => {
    let column = 0
    return line.split(/(\x1b\[[\d;]*m)/).flatMap((part) => {
      const [, codes] = /^\x1b\[([\d;]*)m$/.exec(part) ?? []
      if (codes !== undefined) style = codes.split(';').map(Number).reduce(styled, style)
      if (codes !== undefined || part === '') return []
      const from = column
      column += part.length
      return part.trim() === '' ? [] : [textOf(part, style, edge + from * cell, bar + (at + 0.8) * row, cell)]
    })
  })
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (colour, at) => `<circle cx="${edge + 6 + at * 18}" cy="17" r="5.5" fill="${colour}"/>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
<title>The tour of the README in a terminal</title>
<rect width="${width}" height="${height}" rx="8" fill="#1b1d23"/>
${[...dots, ...texts].join('\n')}
</svg>
`
}

/** Applies a number of an escape sequence (SGR) to a style. */
function styled(style: Style, code: number): Style {
  if (code === 0) return PLAIN
  if (code === 1) return { ...style, bold: true }
  if (code === 2) return { ...style, faint: true }
  if (code === 22) return { ...style, bold: false, faint: false }
  if (code === 39) return { ...style, colour: PLAIN.colour }
  const colour = COLOURS[code >= 90 ? code - 90 : code - 30]
  return colour === undefined ? style : { ...style, colour }
}

/** Placed on the grid of the terminal, so that it fits with any font. */
function textOf(text: string, { colour, faint, bold }: Style, x: number, y: number, cell: number): string {
  const words = text.trimEnd()
  const escaped = words.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)
  const weight = bold ? ' font-weight="bold"' : ''
  const opacity = faint ? ' opacity="0.6"' : ''
  const place = `x="${x.toFixed(1)}" y="${y.toFixed(1)}" textLength="${(words.length * cell).toFixed(1)}"`
  return `<text ${place} fill="${colour}"${weight}${opacity} xml:space="preserve">${escaped}</text>`
}
