/** The journal knows where a run lives: commands that get its id use that. */
import { expect, it } from 'vitest'
import {
  createCliService,
  createHome,
  createInstantEngine,
  type Home,
  LOOPBACK_URL,
  outputOf,
  SET,
  temporaryFolder,
  usageErrorOf,
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

const REQUESTING = ['status', 'wait', 'download']

it.each([
  [
    'another address',
    'there',
    `there was created at ${ELSEWHERE}, not at ${LOOPBACK_URL}.`,
    `Use --base-url ${ELSEWHERE}.`,
  ],
  [
    'another address with --local',
    'there --local',
    `there was created at ${ELSEWHERE}, not at the local service`,
    `Use --base-url ${ELSEWHERE} instead of --local.`,
  ],
  ['another profile', 'staged', 'staged was created with the profile staging', 'Use --profile staging.'],
])('a run of %s is a usage error that names the flag', async (_, words, message, hint) => {
  const home = createHome({ journal: JOURNAL })
  await addProfile(home, LOOPBACK_URL)
  for (const command of REQUESTING) {
    const error = usageErrorOf(await home.run(`${command} ${words}`))
    expect(error).toContain(`error: ${message}`)
    expect(error).toContain(hint)
  }
})

it('a run of a profile with another address is a usage error that names both flags where a variable sets the address', async () => {
  const home = createHome({ journal: [{ ...THERE, profile: 'staging' }], answers: [{ status: 404 }] })
  await addProfile(home, ELSEWHERE)
  for (const command of REQUESTING) {
    expect(usageErrorOf(await home.run(`${command} there`))).toContain(
      `Use --profile staging --base-url ${ELSEWHERE}.`,
    )
    const named = await home.run(`${command} --profile staging --base-url ${ELSEWHERE} there`)
    expect(named.stderr).not.toContain('was created')
  }
})

it.each(['status there', 'wait there', 'download --last', 'wait --all'])(
  'without a configured service, %s of a run elsewhere names its address, and sends nothing',
  async (line) => {
    const home = createHome({ journal: [THERE], env: { RUSHES_API_KEY: 'rk_other' } })
    const error = usageErrorOf(await home.run(line))
    expect(error).toContain(`there was created at ${ELSEWHERE}`)
    expect(error).toContain(`Use --base-url ${ELSEWHERE}.`)
    expect(error.includes('add --local')).toBe(line === 'wait --all')
  },
)

it('without a configured service, an id that exists at two addresses is a usage error that names both', async () => {
  const home = createHome({ journal: [{ id: '1' }, { id: '1', address: ELSEWHERE }], env: {} })
  for (const command of [...REQUESTING, 'cancel', 'show', 'open', 'forget']) {
    const error = usageErrorOf(await home.run(`${command} 1`))
    expect(error).toMatch(
      /^error: There is a run 1 at http:\S+, and another one at http:\S+\. Nothing was sent\.\n/,
    )
    expect(error).toContain(`--base-url ${LOOPBACK_URL}`)
    expect(error).toContain(`--base-url ${ELSEWHERE}`)
  }
  expect(home.rows()).toHaveLength(2)
})

it('without a configured service, --last is the last run of this machine', async () => {
  const { run } = createHome({ journal: [...JOURNAL, { id: 'newest', address: ELSEWHERE }], env: {} })
  expect(JSON.parse(outputOf(await run('show --last --json'))).id).toBe('newest')
  expect(await run('open staged')).toMatchObject({ code: 11 })
})

it('--last on a machine without runs is a usage error', async () => {
  const { run } = createHome({ env: {} })
  for (const command of ['show', 'open', 'status', 'wait'])
    expect(usageErrorOf(await run(`${command} --last`))).toContain('error: The journal has no runs.')
})

it('without a configured service, the local runs of a session need no --local after their create', async () => {
  const folder = temporaryFolder()
  const { run } = createHome({ env: {}, engine: createInstantEngine() })
  await run('run image --local "a fox" --no-wait')
  expect(outputOf(await run('status --last'))).toMatch(/^\w+\tqueued\t\n$/)
  expect(outputOf(await run(`wait --last -o ${folder}/late.png`))).toBe(`${folder}/late.png\n`)
  outputOf(await run(`download --last -o ${folder}/again.png`))
  expect((await run('open --last')).opened).toEqual([`${folder}/again.png`])
})

const GOING = [{ status: 200, body: { status: 'going' } }]

it('the current service gets the requests for its runs, for those of a removed profile, and for unknown ids', async () => {
  const { run, requests } = createHome({ journal: JOURNAL, answers: GOING })
  expect(outputOf(await run('status here gone unknown'))).toBe(
    'here\tgoing\t\ngone\tgoing\t\nunknown\tgoing\t\n',
  )
  expect(requests).toHaveLength(3)
})

it('a local run and another one in one line are a usage error', async () => {
  const { run } = createHome({ journal: JOURNAL })
  for (const command of [...REQUESTING, 'cancel'])
    expect(usageErrorOf(await run(`${command} here local`))).toContain(
      'error: local was created by the local service, and here is not one of its runs.',
    )
})

it('--base-url gets the requests for all runs of a line, whatever the journal says', async () => {
  const { run, requests } = createHome({ journal: JOURNAL, answers: GOING })
  outputOf(await run(`status there local --base-url ${LOOPBACK_URL}`))
  expect(requests).toHaveLength(2)
})

it('without a usable journal, the current service gets the request for an id', async () => {
  const { run } = createHome({ answers: GOING, env: { ...SET, RUSHES_STATE_DIR: '/dev/null/state' } })
  expect(outputOf(await run('status unknown'))).toBe('unknown\tgoing\t\n')
})

it('a tool of rushes mcp names the flag for a run elsewhere, and prints only messages of the protocol', async () => {
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
      const { isError, text, error } = await mcp.call(tool, { ids: [id] })
      expect({ tool, id, isError, code: error.code }).toMatchObject({
        isError: true,
        code: 'usage',
      })
      expect(text).toContain(`\`rushes mcp ${flag}\``)
    }
  expect(errors).toEqual([])
  expect(service.requests.filter(({ url }) => url.pathname.includes('/runs/'))).toEqual([])
})
