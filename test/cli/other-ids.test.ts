/** Responses about another run than the one that was asked for, and one id for several creates. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createFamily } from '../support/family.js'
import {
  createHome,
  ONE_PIXEL_PNG,
  responseOf,
  rowsOf,
  runCli,
  SET,
  temporaryFolder,
} from '../support/index.js'

const PICTURE = (name: string) => Buffer.concat([ONE_PIXEL_PNG, Buffer.from(name)])

/**
 * A service whose creates get these ids, and whose status requests are answered for these runs, one after another; the
 * last one repeats. Each run has one output, which holds its id.
 */
function createOddService(ids: readonly string[], answersFor: readonly string[]) {
  const seen = { creates: 0, looks: 0, outputs: [] as string[] }
  const at = (list: readonly string[], index: number) => list[Math.min(index, list.length - 1)] ?? ''
  const fetch: Fetch = async ({ method, url }) => {
    if (method === 'POST') return responseOf({ status: 201, body: { id: at(ids, seen.creates++) } })
    if (url.pathname.startsWith('/out/')) {
      seen.outputs.push(url.pathname)
      return responseOf({
        status: 200,
        body: PICTURE(url.pathname),
        headers: { 'content-type': 'image/png' },
      })
    }
    if (!url.pathname.includes('/runs/')) return responseOf({ status: 404, body: {} })
    const id = answersFor.length === 0 ? url.pathname.replace(/^.*\//, '') : at(answersFor, seen.looks++)
    const output = { urls: [`${SET.RUSHES_BASE_URL}/out/${id}`] }
    return responseOf({ status: 200, body: { id, status: 'succeeded', output } })
  }
  return { fetch, seen }
}

it('a run that the service accepted and then does not know may be paid for', async () => {
  const fetch: Fetch = async ({ method }) =>
    method === 'POST'
      ? responseOf({ status: 201, body: { id: 'r1' } })
      : responseOf({ status: 404, body: { error: { code: 'run_not_found', message: 'No such run.' } } })
  const { run } = createHome()
  const { code, stderr } = await run('run image "a fox"', { fetch })
  expect(code).toBe(6)
  expect(stderr).toMatch(/r1: .*The service accepted this run before, and it may be paid for\./)
  expect(stderr).toContain('Check the runs of your account before you create it again.')
})

it('a status response with the id of another run is a bad response: its picture is not taken, and the run stays unfinished', async () => {
  const [home, folder] = [temporaryFolder(), temporaryFolder()]
  const { fetch, seen } = createOddService(['r1'], ['r2'])
  const file = join(folder, 'fox.png')
  const { code, stdout, stderr } = await runCli(`run image "a fox" -o ${file}`, {
    home,
    env: SET,
    fetch,
  })
  expect({ code, stdout, outputs: seen.outputs }).toEqual({ code: 8, stdout: '', outputs: [] })
  expect(stderr).toContain('r1')
  expect(stderr).toContain('it is of another run')
  expect(existsSync(file)).toBe(false)
  expect(rowsOf(home)).toMatchObject([{ id: 'r1', phase: 'running' }])
})

it('a status response with the id of another run is asked for again, and the run of the next response is taken', async () => {
  const folder = temporaryFolder()
  const { fetch } = createOddService(['r1'], ['r2', 'r1'])
  const file = join(folder, 'fox.png')
  const { code } = await runCli(`run image "a fox" -o ${file}`, { env: SET, fetch })
  expect(code).toBe(0)
  expect(readFileSync(file)).toEqual(PICTURE('/out/r1'))
})

it.each([['status'], ['cancel'], ['download', '-d']])(
  'a status response with the id of another run is exit 8 for %s',
  async (...words) => {
    const { fetch, seen } = createOddService([], ['r2'])
    const [command = '', ...flags] = words
    const { code, stdout } = await runCli([command, 'r1', ...flags], { env: SET, fetch })
    expect({ code, stdout, outputs: seen.outputs }).toEqual({ code: 8, stdout: '', outputs: [] })
  },
)

it('one id for several creates is warned of once, and all creates are in the journal', async () => {
  const [home, folder] = [temporaryFolder(), temporaryFolder()]
  const { fetch, seen } = createOddService(['r1'], [])
  const target = join(folder, '{index}.png')
  const line = ['run', 'image', 'a fox', '-n', '3', '-o', target]
  const { stderr } = await runCli(line, { home, env: SET, fetch })
  expect(seen.creates).toBe(3)
  expect(stderr.match(/The service gave one id to two creates: r1/g)).toHaveLength(1)
  expect(rowsOf(home).map(({ id }) => id)).toEqual(['r1', 'r1', 'r1'])
  expect(
    readdirSync(folder).every((name) => readFileSync(join(folder, name)).equals(PICTURE('/out/r1'))),
  ).toBe(true)
})

it.each([1, 2])(
  'one id for several creates pays no row of a batch again whose file is not there yet: output %i fails',
  async (failing) => {
    const family = await createFamily([{ name: 'a', prompt: 'A', count: 2 }])
    const { fetch, seen } = createOddService(['r1'], [])
    let outputs = 0
    const breaking: Fetch = async (request) =>
      request.url.pathname.startsWith('/out/') && ++outputs === failing
        ? responseOf({ status: 401, body: {} })
        : fetch(request)
    expect((await family.run([], { fetch: breaking })).code).toBe(12)
    expect((await family.run([], { fetch })).code).toBe(0)
    expect([seen.creates, family.pictures()]).toEqual([2, ['a-2.png', 'a.png']])
    expect(family.flights()).toEqual({})
  },
)

it('one id for several creates leaves a row of another input unconfirmed: the picture is not its own', async () => {
  const family = await createFamily(['a', 'b', 'c'].map((name) => ({ name, prompt: name })))
  const { fetch, seen } = createOddService(['r1'], [])
  const { code, stderr } = await family.run([], { fetch })
  expect([code, family.pictures(), Object.keys(family.lock())]).toEqual([13, ['a.png'], ['a']])
  expect(stderr).toContain('gave it the id of another create of this command (r1)')
  const { creates } = seen
  expect((await family.run('--only a --only b', { fetch })).code).toBe(13)
  expect([seen.creates, family.pictures()]).toEqual([creates, ['a.png']])
})
