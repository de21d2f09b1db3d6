/**
 * `rushes init`: writes a first manifest, and the document of a model server that answers on this machine. Replaces no
 * file, and creates no run.
 */
import { writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { makeFolders } from '../../host/directories.js'
import { describeError, errorCode } from '../../host/system-error.js'
import { printable, quoteWord } from '../../protocol/text.js'
import { MANIFEST_NAME } from '../batch/options.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { lookForServers } from '../doctor/find-servers.js'

const MODEL_NAME = 'model.yaml'

/** Valid for every service: the models are those of the settings. */
const MANIFEST = `# The files of a project, and how each is made: rushes batch creates those that are missing or out of date.
# All fields: docs/batch.md of rushes.

# models: { image: acme/still-1, video: acme/cinema-1 }   # default: your settings; with --local, free previews

defaults:
  kind: image
  output: "assets/{name}.{ext}"

runs:
  - name: fox
    prompt: a red fox in fresh snow, soft morning light
    # aspect_ratio: "16:9"            # parameters of the model: rushes models image

  - name: fox-runs
    kind: video
    prompt: the fox runs towards the camera
    image_urls: [row:fox]             # the image above, which is created first
`

export function register(command: Command, { run }: CommandEnvironment, init = initCommand): void {
  command
    .argument('[folder]', 'Folder of the manifest (default: the current folder)')
    .action((folder: string | undefined) => run(command, (ctx) => init(ctx, folder), { ignoresLocal: true }))
}

export async function initCommand(ctx: Context, folder = '.'): Promise<number> {
  const { out } = ctx
  const manifest = join(folder, MANIFEST_NAME)
  const words = `rushes batch${folder === '.' ? '' : ` ${quoteWord(manifest)}`} --local`
  if (!(await writeNew(manifest, MANIFEST)))
    throw usageError(`${printable(manifest)} already exists.`, `Create its files with \`${words}\`.`)
  out.note(`Created ${printable(manifest)}: an image, and a video that begins with it.`)
  const model = await writeModel(ctx, folder)
  const next = model === undefined ? words : `rushes config set local.models ${quoteWord(model)} && ${words}`
  out.note(
    model === undefined
      ? `Next, with free previews: \`${words}\`. Look for a model server: \`rushes doctor --models\`.`
      : `Next: \`${next}\``,
  )
  if (out.mode.json) out.json({ manifest, model: model ?? null, next })
  return EXIT.ok
}

/** Writes the document of the first server that answers. Resolves with its path. */
async function writeModel(ctx: Context, folder: string): Promise<string | undefined> {
  const { out, stateFolder, env } = ctx
  const servers = await lookForServers(ctx)
  const server = servers.find(({ engine }) => !engine.startsWith('comfyui:'))
  if (server === undefined) {
    const [comfy] = servers
    if (comfy !== undefined)
      out.note(
        `${comfy.answer.title} answers at ${comfy.url}. Export a workflow (Workflow > Export (API)), then name it: ` +
          `rushes run image --local --engine ${quoteWord(comfy.engine)} "a red fox"`,
      )
    return undefined
  }
  const { openLocalEngine } = await import('../models/local-engine.js')
  const { engineDocumentText } = await import('../models/save-model.js')
  const { name, ...entry } = await openLocalEngine({
    ...{ flag: `image=${server.engine}`, stateFolder, env },
    ask: async () => server.answer,
  })
  const path = join(folder, MODEL_NAME)
  const isNew = await writeNew(path, engineDocumentText({ name, ...entry }, folder))
  const shown = printable(relative('.', path))
  if (!isNew) out.warn(`${shown} already exists. It was not changed.`)
  else out.note(`Created ${shown}: ${printable(name)}, of the server at ${server.url}.`)
  return isNew ? path : undefined
}

/** Resolves with false if the file exists. Throws `usage` for other errors. */
async function writeNew(path: string, text: string): Promise<boolean> {
  try {
    makeFolders(dirname(resolve(path)))
    await writeFile(path, text, { flag: 'wx' })
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw usageError(`Cannot write ${describeError(error, path)}.`)
  }
}
