/** Settings of a service: an address that was copied with the path of the interface, and the models. */
import { describe, expect, it } from 'vitest'
import { missingModel, modelFor, modelsByKind } from '../../src/cli/settings/required-settings.js'
import { parseBaseUrl } from '../../src/client/service-access.js'
import type { Kind } from '../../src/protocol/models.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import { createCliService, LOOPBACK_URL, runCli } from '../support/cli.js'
import { temporaryFolder } from '../support/temporary-folder.js'

describe('the path of the interface at the end of a service URL', () => {
  it.each([
    ['https://a.example/api/v1', 'https://a.example'],
    ['https://a.example/api/v1/', 'https://a.example'],
    ['https://a.example/api', 'https://a.example'],
    ['https://a.example/x/api/v1/runs', 'https://a.example/x'],
    ['https://a.example', 'https://a.example'],
    ['https://api.example', 'https://api.example'],
    ['https://a.example/v1', 'https://a.example/v1'],
    ['https://a.example/myapi', 'https://a.example/myapi'],
  ])('is left out of %s', async (address, used) => {
    expect(parseBaseUrl(address)).toBe(used)
    const home = temporaryFolder()
    const ran = await runCli(['config', 'set', 'baseUrl', address], { home })
    expect(ran).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect((await runCli(['config', 'get', 'baseUrl'], { home })).stdout).toBe(`${used}\n`)
  })

  it('does not keep a command from its service', async () => {
    const { run } = await createCliService()
    const env = { RUSHES_BASE_URL: `${LOOPBACK_URL}/api/v1/` }
    const made = await run(['run', 'image', 'a fox', '--no-wait'], { env })
    expect(made).toMatchObject({ code: 0, stderr: '' })
    expect(await run(['status', made.stdout.trim()])).toMatchObject({ code: 0 })
  })
})

const sourceOf = (local: boolean, settings: Readonly<Record<string, string>>) => ({
  globals: { local },
  setting: (name: string) => settings[name],
  models: async () => ({ defaultOf: (kind: Kind) => PREVIEW_DOCUMENTS[kind] }),
})

describe('the model of a kind', () => {
  it('follows its setting, if one is set', async () => {
    const source = sourceOf(false, { videoModel: 'acme/cinema-1' })
    expect(await modelFor(source, 'video')).toBe('acme/cinema-1')
    expect(await modelFor(source, 'image')).toBeUndefined()
    expect(await modelsByKind(source)).toEqual({ video: 'acme/cinema-1' })
  })

  it('comes from the local service with --local, whatever is set', async () => {
    const source = sourceOf(true, { videoModel: 'acme/cinema-1', imageModel: 'acme/still-1' })
    expect(await modelFor(source, 'image')).toBe(LOCAL_MODELS.image)
    expect(await modelsByKind(source)).toEqual(LOCAL_MODELS)
  })

  it('brings the ways to set it when it is missing', () => {
    expect(missingModel('image', (environment, key) => `${environment}, ${key}`)).toEqual({
      code: 'usage',
      text: 'image model',
      hint: 'RUSHES_IMAGE_MODEL, models.image',
    })
  })
})
