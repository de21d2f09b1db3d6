import { describe, expect, it } from 'vitest'
import { missingModel, modelFor, modelsByKind } from '../../src/cli/settings/model-settings.js'
import { LOCAL_MODELS } from '../../src/service/local-models.js'

const sourceOf = (local: boolean, settings: Readonly<Record<string, string>>) => ({
  globals: { local },
  setting: async (name: string) => settings[name],
})

describe('the model of a kind', () => {
  it('is that of its setting, if one is set', async () => {
    const source = sourceOf(false, { videoModel: 'acme/cinema-1' })
    expect(await modelFor(source, 'video')).toBe('acme/cinema-1')
    expect(await modelFor(source, 'image')).toBeUndefined()
    expect(await modelsByKind(source)).toEqual({ video: 'acme/cinema-1' })
  })

  it('is that of the local service under --local, whatever is set', async () => {
    const source = sourceOf(true, { videoModel: 'acme/cinema-1', imageModel: 'acme/still-1' })
    expect(await modelFor(source, 'image')).toBe(LOCAL_MODELS.image)
    expect(await modelsByKind(source)).toEqual(LOCAL_MODELS)
  })

  it('is missed with the ways to set it', () => {
    expect(missingModel('image', (environment, key) => `${environment}, ${key}`)).toEqual({
      code: 'usage',
      text: 'the image model',
      hint: 'RUSHES_IMAGE_MODEL, models.image',
    })
  })
})
