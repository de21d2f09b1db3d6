/** The journal knows where a run lives: commands that get its id use that. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LOOPBACK_URL, runCli, SET, scripted } from '../support/cli.js'
import { addRow } from '../support/journal.js'
import { temporaryFolder } from '../support/service.js'

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

  it('names the profile whose address it is', async () => {
    const home = await withProfiles(temporaryFolder(), ELSEWHERE)
    addRow(home, { id: 'there', address: ELSEWHERE, profile: 'staging' })
    const { code, stderr } = await runCli([command, 'there'], { home, env: SET })
    expect(code).toBe(2)
    expect(stderr).toContain('Use --profile staging.')
  })
})

it('a run of the current address, of a profile that was removed, or that is not known, is asked for', async () => {
  const { fetch, requests } = scripted({ status: 200, body: { status: 'going' } })
  const ran = await runCli(['status', 'here', 'gone', 'unknown'], { home: withRows(), env: SET, fetch })
  expect(ran).toMatchObject({ code: 0, stdout: 'here\tgoing\t\ngone\tgoing\t\nunknown\tgoing\t\n' })
  expect(requests).toHaveLength(3)
})

it.each(['wait', 'download'])('%s takes local runs and others in two commands', async (command) => {
  const home = withRows()
  const { code, stderr } = await runCli([command, 'here', 'local'], { home, env: SET })
  expect(code).toBe(2)
  expect(stderr).toContain('error: local is a run of the local service, and here is not.')
})

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
  const ran = await runCli(['status', 'unknown'], { home, env: SET, fetch })
  expect(ran).toMatchObject({ code: 0, stdout: 'unknown\tgoing\t\n' })
})
