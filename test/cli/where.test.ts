/** The journal knows where a run lives: commands that get its id use that. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCliService, LOOPBACK_URL, runCli, SET, scripted } from '../support/cli.js'
import { createInstantEngine } from '../support/engines.js'
import { addRow, rowsOf } from '../support/journal.js'
import { openMcp } from '../support/mcp.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const ELSEWHERE = 'http://127.0.0.1:2'

function withRows() {
  const home = temporaryFolder()
  addRow(home, { id: 'here', address: LOOPBACK_URL })
  addRow(home, { id: 'there', address: ELSEWHERE })
  addRow(home, { id: 'local', address: 'local' })
  addRow(home, { id: 'staged', address: LOOPBACK_URL, profile: 'staging' })
  addRow(home, { id: 'gone', address: LOOPBACK_URL, profile: 'removed' })
  return home
}

const withProfiles = async (home: string, baseUrl: string) => {
  await runCli(['config', 'set', 'baseUrl', baseUrl, '--profile', 'staging'], { home })
  return home
}

describe.each(['status', 'wait', 'download'])('%s', (command) => {
  it.each([
    [
      'there',
      [],
      `there was created at ${ELSEWHERE}, not at ${LOOPBACK_URL}`,
      `Use --base-url ${ELSEWHERE}.`,
    ],
    [
      'there',
      ['--local'],
      `there was created at ${ELSEWHERE}, not by the local service`,
      `Use --base-url ${ELSEWHERE} instead of --local.`,
    ],
    ['staged', [], 'staged was created with the profile staging', 'Use --profile staging.'],
  ])('of %s with %j is exit 2, and names the way', async (id, flags, message, hint) => {
    const home = await withProfiles(withRows(), LOOPBACK_URL)
    const { fetch, requests } = scripted({ status: 200, body: { status: 'going' } })
    const { code, stdout, stderr } = await runCli([command, id, ...flags], { home, env: SET, fetch })
    expect({ code, stdout, requests: requests.length }).toEqual({ code: 2, stdout: '', requests: 0 })
    expect(stderr).toContain(`error: ${message}`)
    expect(stderr).toContain(hint)
  })

  it('names the profile whose address it is, and the address where a variable sets another', async () => {
    const home = await withProfiles(temporaryFolder(), ELSEWHERE)
    addRow(home, { id: 'there', address: ELSEWHERE, profile: 'staging' })
    const { code, stderr } = await runCli(`${command} there`, { home, env: SET })
    expect(code).toBe(2)
    expect(stderr).toContain(`Use --profile staging --base-url ${ELSEWHERE}.`)
    expect(
      (
        await runCli(`${command} --profile staging --base-url ${ELSEWHERE} there`, {
          home,
          env: SET,
          fetch: scripted({ status: 404 }).fetch,
        })
      ).stderr,
    ).not.toContain('was created')
  })
})

describe('without a configured service', () => {
  it.each([
    ['status', 'there'],
    ['wait', 'there'],
    ['download', '--last'],
    ['wait', '--all'],
  ])('%s %s of a run elsewhere is exit 2, names its address, and sends no key', async (...words) => {
    const home = temporaryFolder()
    addRow(home, { id: 'there', address: ELSEWHERE })
    const { fetch, requests } = scripted({ status: 200, body: { status: 'going' } })
    const { code, stderr } = await runCli(words, { home, env: { RUSHES_API_KEY: 'rk_other' }, fetch })
    expect({ code, requests: requests.length }).toEqual({ code: 2, requests: 0 })
    expect(stderr).toContain(`there was created at ${ELSEWHERE}`)
    expect(stderr).toContain(`Use --base-url ${ELSEWHERE}.`)
  })

  it.each(['status', 'wait', 'download', 'cancel', 'show', 'open', 'forget'])(
    '%s of an id that exists at two addresses is exit 2, and names both',
    async (command) => {
      const home = temporaryFolder()
      addRow(home, { id: '1', address: LOOPBACK_URL })
      addRow(home, { id: '1', address: ELSEWHERE })
      const { fetch, requests } = scripted({ status: 200, body: { status: 'going' } })
      const { code, stdout, stderr } = await runCli(`${command} 1`, { home, fetch })
      expect({ code, stdout, requests: requests.length }).toEqual({ code: 2, stdout: '', requests: 0 })
      expect(stderr).toMatch(
        /^error: There is a run 1 at http:\S+, and another one at http:\S+\. Nothing was sent\.\n/,
      )
      expect(stderr).toContain(`--base-url ${LOOPBACK_URL}`)
      expect(stderr).toContain(`--base-url ${ELSEWHERE}`)
      expect(rowsOf(home)).toHaveLength(2)
    },
  )

  it('--last is the last run of this machine', async () => {
    const home = withRows()
    addRow(home, { id: 'newest', address: ELSEWHERE })
    const run = (line: string) => runCli(line, { home, env: {} })
    expect(JSON.parse((await run('show --last --json')).stdout).id).toBe('newest')
    expect(await run('open staged')).toMatchObject({ code: 11 })
  })

  it('show --last and open --last on a machine without runs name a first command', async () => {
    for (const command of ['show', 'open', 'status', 'wait']) {
      const { code, stderr } = await runCli(`${command} --last`)
      expect(code).toBe(2)
      expect(stderr).toContain('error: The journal has no runs.')
    }
  })

  it('the local runs of a session need no --local after their create', async () => {
    const home = temporaryFolder()
    const folder = temporaryFolder()
    const engine = createInstantEngine()
    const run = (line: string) => runCli(line, { home, engine })
    await run('run image --local "a fox" --no-wait')
    expect((await run('status --last')).stdout).toMatch(/^\w+\tqueued\t\n$/)
    expect(await run(`wait --last -o ${folder}/late.png`)).toMatchObject({
      code: 0,
      stdout: `${folder}/late.png\n`,
    })
    expect(await run(`download --last -o ${folder}/again.png`)).toMatchObject({ code: 0 })
    expect((await run('open --last')).opened).toEqual([`${folder}/again.png`])
  })
})

it('a run of the current address, of a profile that was removed, or that is not known, is asked for', async () => {
  const { fetch, requests } = scripted({ status: 200, body: { status: 'going' } })
  const ran = await runCli('status here gone unknown', { home: withRows(), env: SET, fetch })
  expect(ran).toMatchObject({ code: 0, stdout: 'here\tgoing\t\ngone\tgoing\t\nunknown\tgoing\t\n' })
  expect(requests).toHaveLength(3)
})

it.each(['status', 'wait', 'download', 'cancel'])(
  '%s takes local runs and others in two commands',
  async (command) => {
    const home = withRows()
    const { code, stderr } = await runCli(`${command} here local`, { home, env: SET })
    expect(code).toBe(2)
    expect(stderr).toContain('error: local was created by the local service, and here was not.')
  },
)

it('an address on the command line is asked, whatever the journal says', async () => {
  const { fetch, requests } = scripted({ status: 200, body: { status: 'going' } })
  const words = ['status', 'there', 'local', '--base-url', LOOPBACK_URL]
  expect((await runCli(words, { home: withRows(), env: SET, fetch })).code).toBe(0)
  expect(requests).toHaveLength(2)
})

it('without a usable journal an id is looked up at the current address', async () => {
  const home = temporaryFolder()
  writeFileSync(join(home, 'state'), 'a file, where the folder should be')
  const { fetch } = scripted({ status: 200, body: { status: 'going' } })
  const ran = await runCli('status unknown', { home, env: SET, fetch })
  expect(ran).toMatchObject({ code: 0, stdout: 'unknown\tgoing\t\n' })
})

it('a tool of rushes mcp names the flag for a run of another profile, and prints only messages of the protocol', async () => {
  const service = await createCliService()
  await withProfiles(service.home, LOOPBACK_URL)
  addRow(service.home, { id: 'staged', address: LOOPBACK_URL, profile: 'staging' })
  addRow(service.home, { id: 'there', address: ELSEWHERE })
  addRow(service.home, { id: 'local', address: 'local' })
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
