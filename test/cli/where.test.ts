/** The journal knows where a run lives: commands that get its id use that. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createCliService,
  createHome,
  createInstantEngine,
  type Home,
  LOOPBACK_URL,
  temporaryFolder,
} from '../support/index.js'
import { openMcp } from '../support/mcp.js'

const ELSEWHERE = 'http://127.0.0.1:2'
const THERE = { id: 'there', address: ELSEWHERE }
const LOCAL = { id: 'local', address: 'local' }
const STAGED = { id: 'staged', profile: 'staging' }
const JOURNAL = [{ id: 'here' }, THERE, LOCAL, STAGED, { id: 'gone', profile: 'removed' }]

/** The profile `staging` of this service. */
const addProfile = ({ run }: Pick<Home, 'run'>, baseUrl: string) =>
  run(`config set baseUrl ${baseUrl} --profile staging`)

describe.each(['status', 'wait', 'download'])('%s', (command) => {
  it.each([
    ['there', `there was created at ${ELSEWHERE}, not at ${LOOPBACK_URL}`, `Use --base-url ${ELSEWHERE}.`],
    [
      'there --local',
      `there was created at ${ELSEWHERE}, not at the local service`,
      `Use --base-url ${ELSEWHERE} instead of --local.`,
    ],
    ['staged', 'staged was created with the profile staging', 'Use --profile staging.'],
  ])('of %s is exit 2, and names the way', async (words, message, hint) => {
    const home = createHome({ journal: JOURNAL })
    await addProfile(home, LOOPBACK_URL)
    const { code, stdout, stderr } = await home.run(`${command} ${words}`)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`error: ${message}`)
    expect(stderr).toContain(hint)
  })

  it('names the profile whose address it is, and the address where a variable sets another', async () => {
    const home = createHome({ journal: [{ ...THERE, profile: 'staging' }], answers: [{ status: 404 }] })
    await addProfile(home, ELSEWHERE)
    const { code, stderr } = await home.run(`${command} there`)
    expect(code).toBe(2)
    expect(stderr).toContain(`Use --profile staging --base-url ${ELSEWHERE}.`)
    const named = await home.run(`${command} --profile staging --base-url ${ELSEWHERE} there`)
    expect(named.stderr).not.toContain('was created')
  })
})

it.each(['status there', 'wait there', 'download --last', 'wait --all'])(
  'without a configured service, %s of a run elsewhere is exit 2, names its address, and sends no key',
  async (line) => {
    const home = createHome({ journal: [THERE], env: { RUSHES_API_KEY: 'rk_other' } })
    const { code, stderr } = await home.run(line)
    expect(code).toBe(2)
    expect(stderr).toContain(`there was created at ${ELSEWHERE}`)
    expect(stderr).toContain(`Use --base-url ${ELSEWHERE}.`)
  },
)

it.each(['status', 'wait', 'download', 'cancel', 'show', 'open', 'forget'])(
  'without a configured service, %s of an id that exists at two addresses is exit 2, and names both',
  async (command) => {
    const home = createHome({ journal: [{ id: '1' }, { id: '1', address: ELSEWHERE }], env: {} })
    const { code, stdout, stderr } = await home.run(`${command} 1`)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(
      /^error: There is a run 1 at http:\S+, and another one at http:\S+\. Nothing was sent\.\n/,
    )
    expect(stderr).toContain(`--base-url ${LOOPBACK_URL}`)
    expect(stderr).toContain(`--base-url ${ELSEWHERE}`)
    expect(home.rows()).toHaveLength(2)
  },
)

it('without a configured service, --last is the last run of this machine', async () => {
  const { run } = createHome({ journal: [...JOURNAL, { id: 'newest', address: ELSEWHERE }], env: {} })
  expect(JSON.parse((await run('show --last --json')).stdout).id).toBe('newest')
  expect(await run('open staged')).toMatchObject({ code: 11 })
})

it('without a configured service, --last on a machine without runs is exit 2', async () => {
  const { run } = createHome({ env: {} })
  for (const command of ['show', 'open', 'status', 'wait']) {
    const { code, stderr } = await run(`${command} --last`)
    expect(code).toBe(2)
    expect(stderr).toContain('error: The journal has no runs.')
  }
})

it('without a configured service, the local runs of a session need no --local after their create', async () => {
  const folder = temporaryFolder()
  const { run } = createHome({ env: {}, engine: createInstantEngine() })
  await run('run image --local "a fox" --no-wait')
  expect((await run('status --last')).stdout).toMatch(/^\w+\tqueued\t\n$/)
  expect(await run(`wait --last -o ${folder}/late.png`)).toMatchObject({
    code: 0,
    stdout: `${folder}/late.png\n`,
  })
  expect(await run(`download --last -o ${folder}/again.png`)).toMatchObject({ code: 0 })
  expect((await run('open --last')).opened).toEqual([`${folder}/again.png`])
})

const GOING = [{ status: 200, body: { status: 'going' } }]

it('a run of the current address, of a profile that was removed, or that is not known, is asked for', async () => {
  const { run, requests } = createHome({ journal: JOURNAL, answers: GOING })
  expect(await run('status here gone unknown')).toMatchObject({
    code: 0,
    stdout: 'here\tgoing\t\ngone\tgoing\t\nunknown\tgoing\t\n',
  })
  expect(requests).toHaveLength(3)
})

it.each(['status', 'wait', 'download', 'cancel'])(
  '%s takes local runs and others in two commands',
  async (command) => {
    const { code, stderr } = await createHome({ journal: JOURNAL }).run(`${command} here local`)
    expect(code).toBe(2)
    expect(stderr).toContain('error: local was created by the local service, and here was not.')
  },
)

it('an address on the command line is asked, whatever the journal says', async () => {
  const { run, requests } = createHome({ journal: JOURNAL, answers: GOING })
  expect((await run(`status there local --base-url ${LOOPBACK_URL}`)).code).toBe(0)
  expect(requests).toHaveLength(2)
})

it('without a usable journal an id is looked up at the current address', async () => {
  const { home, run } = createHome({ answers: GOING })
  writeFileSync(join(home, 'state'), 'a file, where the folder should be')
  expect(await run('status unknown')).toMatchObject({ code: 0, stdout: 'unknown\tgoing\t\n' })
})

it('a tool of rushes mcp names the flag for a run of another profile, and prints only messages of the protocol', async () => {
  const service = await createCliService({ journal: [STAGED, THERE, LOCAL] })
  await addProfile(service, LOOPBACK_URL)
  const mcp = await openMcp(service)
  const errors: Error[] = []
  mcp.client.onerror = (error) => void errors.push(error)
  for (const tool of ['wait_run', 'cancel_run'])
    for (const [id, flag] of [
      ['staged', '--profile staging'],
      ['there', `--base-url ${ELSEWHERE}`],
      ['local', '--local'],
    ]) {
      const { isError, text, structured } = await mcp.call(tool, { ids: [id] })
      expect({ tool, id, isError, code: structured.error.code }).toMatchObject({
        isError: true,
        code: 'usage',
      })
      expect(text).toContain(`\`rushes mcp ${flag}\``)
    }
  expect(errors).toEqual([])
  expect(service.requests.filter(({ url }) => url.pathname.includes('/runs/'))).toEqual([])
})
