/** `-i run:<id>`: what is sent where the link of the output is dead. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { imagesSentFor } from '../support/family.js'
import {
  createCliService,
  createInstantEngine,
  ONE_PIXEL_PNG,
  scripted,
  temporaryFolder,
} from '../support/index.js'

const DATA_URL = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`

/** Creates a run and downloads its outputs. `withDeadLinks`: a service whose links have all expired. */
async function createRun(outputs = 1) {
  const files = Array.from({ length: outputs }, (_, at) => `${at}.png`)
  const service = await createCliService({ engine: createInstantEngine({ files }) })
  const folder = temporaryFolder()
  mkdirSync(folder, { recursive: true })
  const words = ['run', 'image', 'a fox', '--json', '-o', join(folder, '{index}.png')]
  const run = JSON.parse((await service.run(words)).stdout)
  const withDeadLinks: Fetch = (request) =>
    request.url.pathname.startsWith('/outputs/')
      ? scripted({ status: 403 }).fetch(request)
      : service.counting(request)
  return { service, folder, run, withDeadLinks }
}

it('an output of an earlier run as a reference sends the downloaded file when its link is dead', async () => {
  const { service, run, withDeadLinks: fetch } = await createRun()
  expect((await service.run(`run image "a hen" -i run:${run.id} --no-wait`, { fetch })).code).toBe(0)
  expect(imagesSentFor(service, 'a hen')).toEqual([DATA_URL])
})

it('an output of an earlier run as a reference of several is the file of that output', async () => {
  const { service, run, folder, withDeadLinks: fetch } = await createRun(2)
  const words = ['run', 'image', 'a hen', '-i', `run:${run.id}#2`, '--no-wait']
  expect((await service.run(words, { fetch })).code).toBe(0)
  expect(imagesSentFor(service, 'a hen')).toEqual([DATA_URL])
  writeFileSync(join(folder, '2.png'), 'changed')
  const { code, stderr } = await service.run(words, { fetch })
  expect(code).toBe(2)
  expect(stderr).toMatch(
    /the service does not have this output any more, and \S+2\.png was changed after it was downloaded/,
  )
})

it('an output of an earlier run as a reference fails, and creates nothing, when it is nowhere', async () => {
  const service = await createCliService()
  const id = (await service.run('run image "a fox" --json')).stdout
  const name = `run:${JSON.parse(id).id}`
  service.requests.length = 0
  const fetch: Fetch = (request) =>
    request.url.pathname.startsWith('/outputs/')
      ? scripted({ status: 404 }).fetch(request)
      : service.counting(request)
  const { code, stderr } = await service.run(['run', 'image', 'a hen', '-i', name], { fetch })
  expect([code, service.requests.filter(({ method }) => method === 'POST')]).toEqual([2, []])
  expect(stderr).toContain('it was not downloaded. Nothing was created.')
})
