/** On a terminal, which `script` of util-linux makes: the spinner, the cursor, the hidden prompt. */
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  BINARY,
  bash,
  createPlace,
  type Environment,
  type Place,
  quoted,
  type Running,
  start,
} from '../support/binary.js'

const HIDE = '\u001b[?25l'
const SHOW = '\u001b[?25h'

const canMakeTerminals = (() => {
  try {
    return /util-linux/.test(execFileSync('script', ['--version'], { encoding: 'utf8' }))
  } catch {
    return false
  }
})()

/** The program on a terminal of its own; what it writes to either stream is on `stdout`. */
function onTerminal(
  place: Place,
  line: string,
  { columns = 80, rows = 24, env = {} }: Terminal = {},
): Running {
  // A terminal that `script` makes away from a terminal has no columns.
  const command = `stty cols ${columns} rows ${rows}; exec ${quoted(process.execPath)} ${quoted(BINARY)} ${line}`
  const words = ['-qec', command, '/dev/null']
  return start(place.with({ TERM: 'xterm-256color', ...env }), words, { command: 'script' })
}

interface Terminal {
  readonly columns?: number
  readonly rows?: number
  readonly env?: Environment
}

/** What stood on the lines that the spinner drew, one after the other. */
const drawnBy = (stdout: string): readonly string[] =>
  stripVTControlCharacters(stdout.replaceAll(/\u001b\[\d*[A-KJG]/g, '\n'))
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '')

describe.skipIf(!canMakeTerminals).concurrent('a terminal', () => {
  it('has a spinner while the run lasts, and its cursor afterwards', async () => {
    const { ended } = onTerminal(createPlace(), 'run image --local "a fox"')
    const { code, stdout } = await ended
    expect(code).toBe(0)
    expect(stdout).toContain(HIDE)
    expect(stdout).toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
    expect(stdout.lastIndexOf(SHOW)).toBeGreaterThan(stdout.lastIndexOf(HIDE))
    expect(stdout).toMatch(/run_\w+\.png\r\n/)
  })

  it.each(['--quiet', '--json', '--no-color'])('%s', async (flag) => {
    const { stdout } = await onTerminal(createPlace(), `run image --local ${flag} "a fox"`).ended
    if (flag === '--no-color') expect(stdout).not.toMatch(/\u001b\[\d+(;\d+)*m/)
    else expect(stdout).not.toMatch(/\u001b/)
    expect(stdout).toContain('.png')
  })

  it.each([40, 20, 12])('of %i columns: the spinner keeps to one line', async (columns) => {
    const { code, stdout } = await onTerminal(createPlace(), 'run video --local "a fox"', { columns }).ended
    expect(code).toBe(0)
    const drawn = drawnBy(stdout).filter((line) => /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/.test(line))
    expect(drawn.length).toBeGreaterThan(0)
    for (const line of drawn) expect(line.length).toBeLessThan(columns)
    expect(stdout).toMatch(/run_\w+\.mp4\r\n/)
  })

  it('of 40 columns: several runs keep to a line each', async () => {
    const { code, stdout } = await onTerminal(createPlace(), 'run image --local -n 3 "a fox"', {
      columns: 40,
    }).ended
    expect(code).toBe(0)
    expect(stdout).toMatch(/3 done/)
    const drawn = drawnBy(stdout).filter((line) => !line.includes('Done in'))
    for (const line of drawn) expect(line.length).toBeLessThan(40)
  })

  it('that is dumb gets lines, and not one escape', async () => {
    const { code, stdout } = await onTerminal(createPlace(), 'run image --local fox', {
      env: { TERM: 'dumb' },
    }).ended
    expect(code).toBe(0)
    expect(stdout).not.toContain('\u001b')
    expect(stdout).toMatch(/^(run run_\w+: \w+ \(\d s\)\r\n)+run_\w+\.png\r\nDone in .+: 1 file .+\r\n$/)
  })

  it('NO_COLOR leaves the spinner and takes its colours', async () => {
    const { stdout } = await onTerminal(createPlace(), 'run image --local fox', { env: { NO_COLOR: '1' } })
      .ended
    expect(stdout).toContain(HIDE)
    expect(stdout).not.toMatch(/\u001b\[\d+(;\d+)*m/)
  })

  it.each<Environment>([{ LC_ALL: 'C' }, { LC_ALL: 'POSIX', LANG: 'en_US.UTF-8' }])(
    'under %j the spinner and the list are ASCII',
    async (env) => {
      const place = createPlace()
      const run = await onTerminal(place, `run image --local -n 2 "${'a fox '.repeat(20)}"`, { env }).ended
      const list = await onTerminal(place, 'list', { env }).ended
      expect([run.code, list.code]).toEqual([0, 0])
      expect(stripVTControlCharacters(run.stdout)).toMatch(/[-\\|/] \d of 2 done/)
      expect(run.stdout + list.stdout).toMatch(/^[\x00-\x7f]*$/)
    },
  )

  it('has no spinner where CI is set', async () => {
    const { stdout } = await onTerminal(createPlace().with({ CI: 'true' }), 'run image --local fox').ended
    expect(stdout).not.toContain(HIDE)
    expect(stdout).toMatch(/run run_\w+: /)
  })

  it('gets its cursor back after Ctrl-C', async () => {
    const waiting = onTerminal(createPlace(), 'run video --local "a fox"')
    await waiting.says('stdout', /processing/)
    waiting.stdin.write('\u0003')
    const { code, stdout } = await waiting.ended
    expect(code).toBe(130)
    expect(stdout.lastIndexOf(SHOW)).toBeGreaterThan(stdout.lastIndexOf(HIDE))
    expect(stdout).toMatch(/rushes wait --local run_\w+/)
  })

  it('may have no columns, as in containers: the program ends all the same', async () => {
    const place = createPlace().with({ TERM: 'xterm-256color' })
    // The deadline is inside, and what is written is cut off: a drawing of endless lines would fill the memory.
    const { stdout } = await bash(
      place,
      `script -qec 'stty cols 0; timeout -s KILL 20 rushes run image --local fox' /dev/null | head -c 20000`,
    )
    expect(/run_\w+\.png\r\n/.test(stdout)).toBe(true)
  })

  it('shows the runs of a batch in a line each, never more than fit, and what became of them', async () => {
    const place = createPlace()
    const rows = Array.from({ length: 12 }, (_, at) => `  - { name: shot-${at}, prompt: fox ${at} }\n`).join(
      '',
    )
    writeFileSync(join(place.folder, 'shots.yaml'), `defaults: { kind: image }\nruns:\n${rows}`)
    const { code, stdout } = await onTerminal(place, 'batch shots.yaml --local', { rows: 12 }).ended
    expect(code).toBe(0)
    expect(stdout).toContain(HIDE)
    expect(stdout.lastIndexOf(SHOW)).toBeGreaterThan(stdout.lastIndexOf(HIDE))
    expect(stdout).toMatch(/shot-\d+ \(run_\w+\) {2}(queued|processing)/)
    expect(stdout).toMatch(/\d+ of 12 done/)
    // Half of twelve lines, less the line of the spinner and the blank one.
    for (const frame of stdout.split(/\d+ of 12 done/))
      expect(
        frame
          .split('\u001b[1A')
          .at(-1)
          ?.match(/^ {2}shot-/gm)?.length ?? 0,
      ).toBeLessThanOrEqual(4)
    for (let at = 0; at < 12; at++) expect(stdout).toMatch(new RegExp(`shot-${at}\\.png\\r\\n`))
    expect(stdout).toMatch(/12 runs: 12 created/)
  })

  it('may become another size while a batch is under way', async () => {
    const place = createPlace()
    const rows = Array.from({ length: 8 }, (_, at) => `  - { name: shot-${at}, prompt: fox ${at} }\n`).join(
      '',
    )
    writeFileSync(join(place.folder, 'shots.yaml'), `defaults: { kind: image }\nruns:\n${rows}`)
    const { code, stdout } = await bash(
      place.with({ TERM: 'xterm-256color' }),
      `script -qec 'stty cols 100 rows 40; rushes batch shots.yaml --local & job=$!
       for size in "30 10" "200 50" "12 4" "80 24"; do sleep 0.4; set -- $size; stty cols $1 rows $2; kill -WINCH $job; done
       wait $job' /dev/null`,
    )
    expect(code).toBe(0)
    for (let at = 0; at < 8; at++) expect(stdout).toContain(`shot-${at}.png`)
    expect(stdout.lastIndexOf(SHOW)).toBeGreaterThan(stdout.lastIndexOf(HIDE))
  })

  it('does not show the key that login asks for', async () => {
    const place = createPlace()
    const login = onTerminal(place, 'login --no-verify --base-url http://127.0.0.1:9')
    await login.says('stdout', /API key for/)
    login.stdin.write('sk-hidden-7f3a\r')
    const { code, stdout } = await login.ended
    expect(code).toBe(0)
    expect(stdout).not.toContain('sk-hidden')
    const file = `${place.home}/.config/rushes/config.json`
    expect(readFileSync(file, 'utf8')).toContain('sk-hidden-7f3a')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(`${place.home}/.config/rushes`).mode & 0o777).toBe(0o700)
  })

  it('stores nothing when the prompt is left by Ctrl-C', async () => {
    const place = createPlace()
    const login = onTerminal(place, 'login --no-verify --base-url http://127.0.0.1:9')
    await login.says('stdout', /API key for/)
    login.stdin.write('\u0003')
    const { code, stdout } = await login.ended
    expect(code).toBe(130)
    expect(stdout.lastIndexOf(SHOW)).toBeGreaterThanOrEqual(stdout.lastIndexOf(HIDE))
    expect(() => statSync(`${place.home}/.config/rushes/config.json`)).toThrow('ENOENT')
  })
})
