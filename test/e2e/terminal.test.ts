/** On a terminal, which `script` of util-linux makes: the spinner, the cursor, the hidden prompt. Widths, and terminals without a spinner: test/cli/progress.test.ts. */
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  BINARY,
  bash,
  createPlace,
  type Place,
  personAt,
  quickEngines,
  quoted,
  type Running,
  type Service,
  serveQuickly,
  start,
} from '../support/index.js'

const HIDE = '\u001b[?25l'
const SHOW = '\u001b[?25h'
const COLOUR = /\u001b\[\d+(;\d+)*m/

const canMakeTerminals = (() => {
  try {
    return /util-linux/.test(execFileSync('script', ['--version'], { encoding: 'utf8' }))
  } catch {
    return false
  }
})()

/** The program on a terminal of its own; what it writes to either stream is on `stdout`. */
function onTerminal(place: Place, line: string, columns = 80): Running {
  // A terminal that `script` makes away from a terminal has no columns.
  const command = `stty cols ${columns} rows 24; exec ${quoted(process.execPath)} ${quoted(BINARY)} ${line}`
  return start(place.with({ TERM: 'xterm-256color' }), ['-qec', command, '/dev/null'], { command: 'script' })
}

function expectCursorIsBack(stdout: string): void {
  expect(stdout).toContain(HIDE)
  expect(stdout.lastIndexOf(SHOW)).toBeGreaterThan(stdout.lastIndexOf(HIDE))
}

/** The lines that the spinner drew, one after the other. */
const drawnBy = (stdout: string): readonly string[] =>
  stripVTControlCharacters(stdout.replaceAll(/\u001b\[\d*[A-KJG]/g, '\n'))
    .split(/[\r\n]+/)
    .filter((line) => /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/.test(line))

describe.skipIf(!canMakeTerminals)('a terminal', () => {
  let service: Service
  beforeAll(async () => {
    // Long enough to be seen. The service refuses its first create, which is that of the first test.
    service = await serveQuickly([...quickEngines(1), '--fault', 'create:429:RATE_LIMITED:1'])
  })

  it('of 40 columns shows on one line a coloured spinner and that the command is rate limited, and its cursor again after Ctrl-C', async () => {
    const waiting = onTerminal(await personAt(service), 'run video "a fox"', 40)
    await waiting.prints('stdout', /rate limited, retrying in [12] s/)
    await waiting.prints('stdout', /processing/)
    const drawn = drawnBy(waiting.printed.stdout)
    waiting.stdin.write('\u0003')
    const { code, stdout } = await waiting.ended
    expect(code).toBe(130)
    expectCursorIsBack(stdout)
    expect(stdout).toMatch(COLOUR)
    expect(drawn.length).toBeGreaterThan(0)
    for (const line of drawn) expect(line.length).toBeLessThan(40)
    expect(stdout).toMatch(/rushes wait run_\w+/)
  })

  it.concurrent('with --no-color counts the runs of a batch on one line, also when it is resized, and shows the results', async () => {
    const place = await personAt(service)
    const rows = Array.from({ length: 6 }, (_, at) => `  - { name: shot-${at}, prompt: fox ${at} }\n`)
    writeFileSync(join(place.folder, 'shots.yaml'), `defaults: { kind: image }\nruns:\n${rows.join('')}`)
    const { code, stdout } = await bash(
      place.with({ TERM: 'xterm-256color' }),
      `script -qec 'stty cols 100 rows 12; rushes batch shots.yaml --no-color & job=$!
       for size in "30 10" "200 50" "12 4" "80 24"; do sleep 0.4; set -- $size; stty cols $1 rows $2; kill -WINCH $job; done
       wait $job' /dev/null`,
    )
    expect(code).toBe(0)
    expectCursorIsBack(stdout)
    expect(stripVTControlCharacters(stdout)).toMatch(/\d of 6 left · \d (queued|processing|succeeded)/)
    expect(stdout).not.toMatch(COLOUR)
    for (let at = 0; at < 6; at++) expect(stdout).toMatch(new RegExp(`shot-${at}\\.png\\r\\n`))
    expect(stdout).toMatch(/6 runs: 6 created/)
  })

  /** Types the URL of a service, and then `typed`, at the prompts of login. */
  async function logIn(typed: string) {
    const place = createPlace()
    const login = onTerminal(place, 'login --no-verify')
    await login.prints('stdout', /Service URL: /)
    login.stdin.write('http://127.0.0.1:9\r')
    await login.prints('stdout', /API key for/)
    login.stdin.write(typed)
    const { code, stdout } = await login.ended
    return { code, stdout, file: `${place.home}/.config/rushes/config.json` }
  }

  it.concurrent('login asks for the URL, and hides the key that is typed', async () => {
    const { code, stdout, file } = await logIn('sk-hidden-7f3a\r')
    expect(code).toBe(0)
    expect(stdout).not.toContain('sk-hidden')
    expect(JSON.parse(readFileSync(file, 'utf8')).profiles.default).toEqual({
      baseUrl: 'http://127.0.0.1:9',
      apiKey: { value: 'sk-hidden-7f3a', origin: 'http://127.0.0.1:9' },
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(file)).mode & 0o777).toBe(0o700)
  })

  it.concurrent('lets the command for the key show a prompt', async () => {
    const command = 'printf "PIN? " > /dev/tty; read -r key; echo "$key"'
    const place = (await personAt(service)).with({
      RUSHES_API_KEY: undefined,
      RUSHES_API_KEY_COMMAND: command,
    })
    const running = onTerminal(place, 'status run_none')
    await running.prints('stdout', /PIN\? /)
    running.stdin.write(`${service.apiKey}\r`)
    const { code, stdout } = await running.ended
    // The key was accepted: the service says that the run does not exist.
    expect({ code, stdout }).toEqual({ code: 6, stdout: expect.stringContaining('run_none') })
  })

  it.concurrent('stores nothing when the prompt is canceled with Ctrl-C', async () => {
    const { code, stdout, file } = await logIn('\u0003')
    expect(code).toBe(130)
    expect(stdout.lastIndexOf(SHOW)).toBeGreaterThanOrEqual(stdout.lastIndexOf(HIDE))
    expect(() => statSync(file)).toThrow('ENOENT')
  })
})
