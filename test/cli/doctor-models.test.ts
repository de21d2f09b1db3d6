/** `rushes doctor --models`: one line for the server of each model, without a run and without a key. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createNetwork } from '../../src/host/undici.js'
import { whenOver } from '../support/after-file.js'
import { runCli } from '../support/cli.js'
import { createManualClock } from '../support/clock.js'
import { createImagesServer } from '../support/model-servers/images.js'
import { temporaryFolder } from '../support/service.js'

const KEY = 'omni-secret-key'

async function doctor(folder: string) {
  const clock = createManualClock()
  const network = createNetwork({ env: {}, clock })
  whenOver(() => network.close())
  const options = { clock, fetch: network.fetch, env: { OMNI_KEY: KEY } }
  return await clock.runUntil(runCli(['doctor', '--models', folder], options))
}

const documentOf = (name: string, engine: object): string =>
  JSON.stringify({ name, kind: 'image', engine: { type: 'images', ...engine } })

test('names each model with its server, and fails when one is missing', async () => {
  const servers = await Promise.all([
    createImagesServer('sdcpp'),
    createImagesServer('omni'),
    createImagesServer('localai'),
  ])
  const [sdcpp = '', omni = '', localai = ''] = servers.map(({ url }) => `${url}/v1`)
  const folder = temporaryFolder()
  const write = (name: string, engine: object) =>
    writeFileSync(join(folder, `${name}.yaml`), documentOf(`acme/${name}`, engine))
  write('a', { url: sdcpp })
  write('b', { url: omni, key_env: 'OMNI_KEY', model: 'Qwen/Qwen-Image' })
  const fine = await doctor(folder)
  expect(fine).toMatchObject({ code: 0, stderr: '' })
  expect(fine.stdout.replaceAll(/ +/g, ' ')).toBe(
    [
      `ok model acme/a (images at ${sdcpp}): stable-diffusion.cpp, model sd-cpp-local`,
      `ok model acme/b (images at ${omni}): models Qwen/Qwen-Image`,
      'ok model rushes/preview-video (preview)',
      '',
    ].join('\n'),
  )
  write('c', { url: localai, model: 'flux' })
  await servers[0]?.close()
  const broken = await doctor(folder)
  expect(broken.code).toBe(9)
  expect(broken.stdout).toContain(
    `acme/a (images at ${sdcpp}): The connection to the model's server failed: the connection was refused.`,
  )
  expect(broken.stdout).toMatch(/^warning +model +acme\/c .*: The server does not list the model "flux"\./m)
  expect(fine.stdout + broken.stdout).not.toContain(KEY)
  expect(servers.flatMap(({ requests }) => requests).filter(({ method }) => method !== 'GET')).toEqual([])
})

test('documents with a problem are reported with their lines', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'a.yaml'), 'name: acme/a\nkind: image\nengine:\n  type: images\n')
  const { code, stdout } = await doctor(folder)
  expect(code).toBe(2)
  expect(stdout).toMatch(/a\.yaml:3:1: engine: url is missing/)
})
