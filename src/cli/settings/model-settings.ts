/** The model of a kind when the command line names none: that of the settings, or with `--local` that of the local service. */
import { KINDS, type Kind } from '../../protocol/models.js'
import { LOCAL_MODELS } from '../../service/local-models.js'
import type { Missing } from './missing.js'
import { SETTINGS, type SettingName } from './table.js'

export const MODEL_SETTINGS = {
  video: 'videoModel',
  image: 'imageModel',
} as const satisfies Record<Kind, SettingName>

/** The parts of a command's context that are needed to find a model. */
export interface ModelSource {
  readonly globals: { readonly local: boolean }
  setting(name: SettingName): Promise<string | undefined>
}

/** Undefined when no setting names a model. */
export const modelFor = async ({ globals, setting }: ModelSource, kind: Kind): Promise<string | undefined> =>
  globals.local ? LOCAL_MODELS[kind] : setting(MODEL_SETTINGS[kind])

/** The models of the kinds for which one is set. */
export async function modelsByKind(source: ModelSource): Promise<Readonly<Partial<Record<Kind, string>>>> {
  const models: Partial<Record<Kind, string>> = {}
  for (const kind of KINDS) {
    const model = await modelFor(source, kind)
    if (model !== undefined) models[kind] = model
  }
  return models
}

/** `hintOf` is given the environment variable and the config key of the setting. */
export function missingModel(kind: Kind, hintOf: (environment: string, key: string) => string): Missing {
  const { environment, key } = SETTINGS[MODEL_SETTINGS[kind]]
  return { code: 'usage', text: `the ${kind} model`, hint: hintOf(environment, key) }
}
