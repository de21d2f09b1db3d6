/** `rushes doctor --models`: one line for the server of each model, without a run and without a key. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createNetwork } from '../../src/host/undici.js'
import { whenOver } from '../support/after-file.js'
import { runCli } from '../support/cli.js'
import { createManualClock } from '../support/clock.js'
import { createHostedApis } from '../support/hosted-apis.js'
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

test('names the account that pays for a hosted model, and its balance', async () => {
  const folder = temporaryFolder()
  const document = (name: string, more: object) =>
    writeFileSync(
      join(folder, `${name}.yaml`),
      JSON.stringify({ name: `acme/${name}`, kind: 'image', input: { image_urls: false }, ...more }),
    )
  const engine = { type: 'fal', model: 'fal-ai/flux/dev' }
  document('a', { engine, cost: { run: 0.025, currency: 'USD' } })
  document('b', { engine })
  const body = { credits: { current_balance: 24.5, currency: 'USD' } }
  const { fetch, routes } = createHostedApis(['https://api.fal.ai/v1/account/billing', { status: 200, body }])
  const check = () => runCli(['doctor', '--models', folder], { fetch, env: { FAL_KEY: KEY } })
  const { code, stdout } = await check()
  expect(code).toBe(0)
  expect(stdout.replaceAll(/ +/g, ' ')).toBe(
    [
      'ok model acme/a (fal at https://queue.fal.run): balance 24.5 USD; paid by the account of FAL_KEY, 0.025 USD for a run',
      'ok model acme/b (fal at https://queue.fal.run): balance 24.5 USD; paid by the account of FAL_KEY, no cost in the document',
      'ok model rushes/preview-video (preview)',
      '',
    ].join('\n'),
  )
  routes.splice(0, 1, ['https://api.fal.ai/', { status: 401 }])
  const refused = await check()
  expect(refused.code).toBe(9)
  expect(refused.stdout).toContain('acme/a (fal at https://queue.fal.run): fal refused the key (401).')
  expect(stdout + refused.stdout + refused.stderr).not.toContain(KEY)
})

test('documents with a problem are reported with their lines', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'a.yaml'), 'name: acme/a\nkind: image\nengine:\n  type: images\n')
  const { code, stdout } = await doctor(folder)
  expect(code).toBe(2)
  expect(stdout).toMatch(/a\.yaml:3:1: engine: url is missing/)
})
