/** What `rushes serve` says when it listens. */

import { quoteWord } from '../../protocol/shell-word.js'
import type { Role } from '../../service/role.js'
import { nameOf } from '../../service/store/postgres/connection-errors.js'
import type { Context } from '../context/context.js'
import type { Engines } from '../flags/engines.js'

/** Under `--json` standard error has JSON lines, so the note is one of them. */
export function sayFault({ out }: Context, words: string): void {
  if (out.mode.json) out.warn(`fault: ${words}`)
  else out.note(`fault: ${words}`)
}

export interface Announcement {
  readonly url: string
  readonly role: Role
  readonly data: string
  readonly databaseUrl: string | undefined
  /** On the first start of a data folder. */
  readonly apiKey: string | undefined
  readonly models: Engines['models']
  /** As it was given. */
  readonly dataFlag: string | undefined
  readonly metricsUrl: string | undefined
}

/** Standard output has the lines that make `rushes run` in another terminal use this service. */
export function announce({ out }: Context, announcement: Announcement): void {
  const { url, role, data, databaseUrl, apiKey, models, dataFlag, metricsUrl } = announcement
  if (out.mode.json) {
    const { image, video } = models
    out.json({
      url,
      role,
      data,
      ...(databaseUrl !== undefined && { database: nameOf(databaseUrl) }),
      ...(apiKey !== undefined && { api_key: apiKey }),
      models: { image, video },
      ...(metricsUrl !== undefined && { metrics_url: metricsUrl }),
    })
    return
  }
  const does = role === 'worker' ? `Rendering runs, health checks on ${url}` : `Listening on ${url}`
  out.note(`${does}, data in ${data}. Press Ctrl-C to stop.`)
  if (databaseUrl !== undefined) out.note(`Database: ${nameOf(databaseUrl)}`)
  if (metricsUrl !== undefined) out.note(`Metrics on ${metricsUrl}`)
  if (role === 'worker') return
  if (role === 'api') out.note('This node renders nothing: start one with --role worker too.')
  out.note('To use it, run these lines in another terminal:')
  const variables = {
    RUSHES_BASE_URL: url,
    ...(apiKey !== undefined && { RUSHES_API_KEY: apiKey }),
    RUSHES_IMAGE_MODEL: models.image,
    RUSHES_VIDEO_MODEL: models.video,
  }
  for (const [name, value] of Object.entries(variables)) out.line(`export ${name}=${quoteWord(value)}`)
  const dataWords = dataFlag === undefined ? '' : ` --data ${quoteWord(dataFlag)}`
  const where = databaseUrl === undefined ? dataWords : ' --database <url>'
  out.note(
    apiKey === undefined
      ? `The API key (RUSHES_API_KEY) was shown on the first start. Create a new one with \`rushes admin key create --account default${where}\`.`
      : 'The API key is shown only once. Then try `rushes run image "a fox"`.',
  )
}
