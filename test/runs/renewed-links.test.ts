/** Links that were renewed and are more than before. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createFamily } from '../support/family.js'
import { createCliService, ONE_PIXEL_PNG, responseOf, temporaryFolder } from '../support/index.js'

/** The first status response names one output, whose link has expired; later ones name `outputs` others. */
function growing(service: { readonly counting: Fetch; readonly baseUrl: string }, outputs: number): Fetch {
  let looks = 0
  return async (request) => {
    const { pathname } = request.url
    if (pathname.startsWith('/old/')) return responseOf({ status: 403 })
    if (pathname.startsWith('/new/')) return responseOf({ status: 200, body: ONE_PIXEL_PNG })
    if (request.method !== 'GET' || !pathname.includes('/runs/')) return service.counting(request)
    const names = looks++ === 0 ? ['old/1'] : Array.from({ length: outputs }, (_, at) => `new/${at + 1}`)
    const urls = names.map((name) => `${service.baseUrl}/${name}`)
    const body = { id: pathname.replace(/^.*\//, ''), status: 'succeeded', output: { urls } }
    return responseOf({ status: 200, body })
  }
}

it.each([1, 3])('a run fetches all %i outputs that the renewed links name', async (outputs) => {
  const service = await createCliService()
  const folder = temporaryFolder()
  const line = ['run', 'image', 'a fox', '-o', join(folder, '{index}.png')]
  const { code, stdout } = await service.run(line, { fetch: growing(service, outputs) })
  const names = Array.from({ length: outputs }, (_, at) => `${at + 1}.png`)
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: names.map((name) => `${join(folder, name)}\n`).join(''),
  })
  expect(readdirSync(folder).sort()).toEqual(names)
})

it('a row of a batch fetches them too, and its lock file names them', async () => {
  const family = await createFamily([{ name: 'a', prompt: 'A' }])
  const { code } = await family.run([], { fetch: growing(family.service, 2) })
  expect([code, family.pictures()]).toEqual([0, ['a-2.png', 'a.png']])
  expect(family.lock().a).toMatchObject({ file: 'a.png', outputs: [{ file: 'a-2.png' }] })
})
