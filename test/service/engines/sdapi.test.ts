/** The engine `sdapi` against servers that speak AUTOMATIC1111's interface. */
import { expect, test } from 'vitest'
import { resultOf, testEngine } from '../../contract/engine.js'
import { jobOf, openEngine } from '../../support/model-servers/engine.js'
import { createImagesServer } from '../../support/model-servers/images.js'
import { sizeOfPng } from '../../support/model-servers/pictures.js'

testEngine({
  name: 'sdapi',
  createServer: () => createImagesServer('forge'),
  document: (url) => ({ engine: { type: 'sdapi', url } }),
  creates: 'POST /sdapi/v1/txt2img',
  results: 'POST /sdapi/v1/txt2img',
  createsWithReferences: 'POST /sdapi/v1/img2img',
  hasKey: true,
})

const ENV = { FORGE_KEY: 'me:secret-password' }

const document = (url: string) => ({
  engine: {
    type: 'sdapi',
    url,
    model: 'flux1-dev.safetensors',
    key_env: 'FORGE_KEY',
    sizes: { '16:9': '1280x704' },
    send: { steps: 'steps', clip: 'override_settings.CLIP_stop_at_last_layers' },
  },
  input: { steps: { type: 'integer' }, clip: { type: 'integer' } },
})

test('sends size, parameters, checkpoint and a user name with its password', async () => {
  const server = await createImagesServer('forge')
  const { clock, engine } = openEngine(document(server.url), ENV)
  const job = jobOf({ input: { prompt: 'a fox', aspect_ratio: '16:9', quality: 'high', steps: 20, clip: 2 } })
  await clock.runUntil(engine.render(job))
  expect(sizeOfPng(resultOf(job.folder))).toBe('1920x1088')
  expect(server.requests[0]?.json()).toEqual({
    prompt: 'a fox',
    width: 1920,
    height: 1088,
    batch_size: 1,
    n_iter: 1,
    steps: 20,
    override_settings: { sd_model_checkpoint: 'flux1-dev.safetensors', CLIP_stop_at_last_layers: 2 },
  })
  expect(server.requests[0]?.headers.authorization).toBe(
    `Basic ${Buffer.from('me:secret-password').toString('base64')}`,
  )
})

test.each([
  'user "me" with password "secret-password"',
  'password secret%2Dpassword',
  `me:secret-password and ${Buffer.from('me:secret-password').toString('base64')}`,
])('an error never contains the password: %s', async (detail) => {
  const server = await createImagesServer('forge')
  const { clock, engine } = openEngine(document(server.url), ENV)
  server.fault('POST /sdapi/v1/txt2img', { status: 401, body: { detail } })
  const error = await clock.runUntil(engine.render(jobOf()).catch((reason: Error) => reason))
  const { message } = error as Error
  expect(message).toContain('[API key]')
  expect(message).not.toMatch(/secret|c2VjcmV0/)
})

test('an empty picture with status 200, as KoboldCpp reports a failure, fails the run', async () => {
  const server = await createImagesServer('forge')
  server.fault('POST', { body: { images: [''], parameters: {}, info: '' } })
  const { run } = openEngine({ engine: { type: 'sdapi', url: server.url } })
  await expect(run()).rejects.toThrow("The model's server answered without a result.")
})

test('a text at which stable-diffusion.cpp would end fails its run before anything is sent', async () => {
  const server = await createImagesServer('forge')
  const { run } = openEngine({
    engine: { type: 'sdapi', url: server.url, send: { negative: 'negative_prompt' } },
    input: { negative: { type: 'string' } },
  })
  await expect(run({ input: { prompt: 'a fox', negative: 'x'.repeat(40_000) } })).rejects.toThrow(
    "The texts of this run have 40005 bytes together; the model's server takes at most 8000. Shorten the prompt.",
  )
  expect(server.requests).toEqual([])
})
