/** Machines that lack something: a home, a standard input, a network. */
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { bash, createPlace, filesBelow, type Place, processesOf, rushes, serve } from '../support/binary.js'

/** Nothing can be made below it, not even by root. */
const UNWRITABLE = '/dev/null/home'

/** An address at which nobody listens. */
async function refusingUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}

const elsewhere = (place: Place, url: string) =>
  place.with({ RUSHES_BASE_URL: url, RUSHES_API_KEY: 'key', RUSHES_IMAGE_MODEL: 'acme/still-1' })

describe.concurrent('a home that cannot be written', () => {
  it('is no hindrance to a run', async () => {
    const place = (await serve(createPlace())).with({ HOME: UNWRITABLE })
    const { code, stdout, stderr } = await rushes(place, ['run', 'image', 'a fox', '-o', 'fox.png'])
    expect(stderr).not.toContain('error')
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
  })

  it.each([
    [['run', 'image', '--local', 'a fox']],
    [['serve', '--port', '0']],
    [['config', 'set', 'timeout', '5m']],
  ])('%j says what cannot be kept', async (words) => {
    const place = createPlace().with({ HOME: UNWRITABLE })
    const { code, stdout, stderr } = await rushes(place, words)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(UNWRITABLE)
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})

describe.concurrent('no home at all', () => {
  it('leaves everything that keeps nothing as it is', async () => {
    const place = createPlace().with({ HOME: undefined })
    const { code, stdout } = await rushes(place, ['config', 'path'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\/.+\/config\.json\n$/)
    expect((await rushes(place, ['run', 'image', 'fox', '--dry-run', '--model', 'a/b'])).code).toBe(0)
  })

  it('takes the folders that are named', async () => {
    const place = createPlace()
    const named = place.with({ HOME: undefined, RUSHES_STATE_DIR: place.home, RUSHES_CONFIG_DIR: place.home })
    expect((await rushes(named, ['run', 'image', '--local', 'fox'])).code).toBe(0)
    expect(filesBelow(place.home)).toContain('local/service.db')
  })
})

describe.concurrent('standard streams that are closed', () => {
  it('standard input: a run needs none, a dash finds nothing', async () => {
    const { code, stdout, stderr } = await bash(
      createPlace(),
      `rushes run image --local -q fox <&-; echo "$?"
      rushes run image --local --prompt - <&-; echo "$?"`,
    )
    expect(code).toBe(0)
    expect(stdout).toMatch(/^run_\w+\.png\n0\n2\n$/)
    expect(stderr).toContain('nothing was sent')
  })

  it('standard error: the answer and the exit code stay', async () => {
    const { stdout } = await bash(
      createPlace(),
      'rushes run image --local fox 2>&-; echo "$?"; rushes nothing 2>&-; echo "$?"',
    )
    expect(stdout).toMatch(/^run_\w+\.png\n0\n2\n$/)
  })
})

describe.concurrent('a network that is gone', () => {
  it('ends a create with 9, and says that nothing was paid', async () => {
    const place = elsewhere(createPlace(), await refusingUrl())
    const [plain, json] = await Promise.all([
      rushes(place, ['run', 'image', 'a fox']),
      rushes(place, ['run', 'image', 'a fox', '--json']),
    ])
    expect(plain).toMatchObject({ code: 9, stdout: '' })
    expect(plain.stderr).toMatch(/No run was created and nothing was paid/)
    expect(plain.stderr).not.toMatch(/^\s+at /m)
    expect(json.code).toBe(9)
    expect(JSON.parse(json.stderr)).toEqual({
      error: {
        code: 'network',
        message: expect.any(String),
        hint: expect.any(String),
        http_status: null,
        exit_code: 9,
        run_id: null,
      },
    })
  })

  it('ends a status with 9, naming the run', async () => {
    const place = elsewhere(createPlace(), await refusingUrl())
    const { code, stdout, stderr } = await rushes(place, ['status', 'run_1'])
    expect({ code, stdout }).toEqual({ code: 9, stdout: '' })
    expect(stderr).toContain('run_1')
  })

  it('comes back: a wait outlasts a service that starts again', async () => {
    const home = createPlace()
    const first = await serve(home)
    const port = new URL(first.url).port
    const { stdout } = await rushes(first, ['run', 'video', 'a fox', '--no-wait'])
    const waiting = rushes(first, ['wait', stdout.trim()])
    first.process.kill('SIGKILL')
    await first.process.ended
    const second = await serve(home, ['--port', port])
    expect(second.url).toBe(first.url)
    expect(await waiting).toMatchObject({ code: 0, stdout: expect.stringContaining(`${first.url}/outputs/`) })
    second.process.kill('SIGTERM')
    await second.process.ended
    expect(processesOf(home, /renderer/)).toEqual([])
  })
})
