/** Settings of a service: an address that was copied with the path of the API, and the models. */
import { describe, expect, it } from 'vitest'
import { missingModel, modelFor, modelsByKind } from '../../src/cli/settings/required-settings.js'
import { addressHint } from '../../src/cli/settings/table.js'
import type { Kind } from '../../src/protocol/models.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import { createCliService, LOOPBACK_URL, runCli } from '../support/cli.js'

describe('the hint', () => {
  it.each([
    ['https://a.example/api/v1', 'https://a.example'],
    ['https://a.example/api', 'https://a.example'],
    ['https://a.example/x/api/v1/runs', 'https://a.example/x'],
  ])('%s: use %s', (address, use) => {
    expect(addressHint(address)).toMatch(new RegExp(` Use ${use}$`))
  })

  it.each(['https://a.example', 'https://api.example', 'https://a.example/v1', 'https://a.example/myapi'])(
    '%s needs none',
    (address) => expect(addressHint(address)).toBeUndefined(),
  )
})

describe('is printed once', () => {
  const said = `warning: The service URL ends in /api/v1, but rushes adds /api/v1 itself. Use ${LOOPBACK_URL}\n`

  it('when a command reads the address, and the command continues', async () => {
    const { run } = await createCliService()
    const { stderr } = await run(['status', 'run_1'], { env: { RUSHES_BASE_URL: `${LOOPBACK_URL}/api/v1/` } })
    expect(stderr.split(said)).toHaveLength(2)
    expect(stderr).toContain('error: ')
  })

  it('when the address is set', async () => {
    const ran = await runCli(['config', 'set', 'baseUrl', `${LOOPBACK_URL}/api/v1`])
    expect(ran).toMatchObject({ code: 0, stdout: '', stderr: said })
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
