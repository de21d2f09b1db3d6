/** The lines that `rushes serve` prints when it starts to listen. */
import { quoteWord, variableLine } from '../../host/shell.js'
import { KINDS, type ModelDocument } from '../../protocol/models.js'
import { isOnAllAddresses } from '../../service/http/connections.js'
import { defaultDocument } from '../../service/models/served-model.js'
import type { NodeRole } from '../../service/rules/names.js'
import { nameOf } from '../../service/store/postgres/connection-errors.js'
import { type ConsoleStart, linkPath } from '../../service/web/sessions.js'
import type { Context } from '../context/context.js'
import { DEFAULT_PUBLIC_URL } from './flags.js'

/**
 * Prints an injected fault. With `--json`, standard error contains only JSON lines, so the fault is printed as a
 * warning.
 */
export function printFault({ out }: Context, words: string): void {
  if (out.mode.json) out.warn(`fault: ${words}`)
  else out.note(`fault: ${words}`)
}

interface ConsoleAnnouncement {
  readonly url: string
  /** Result of `publicUrlOf`. */
  readonly publicUrl: string | undefined
  readonly console: ConsoleStart | undefined
}

interface Announcement extends ConsoleAnnouncement {
  readonly host: string
  readonly role: NodeRole
  readonly data: string
  readonly databaseUrl: string | undefined
  /** Set only on the first start of a data folder. */
  readonly apiKey: string | undefined
  readonly models: readonly ModelDocument[]
  /** Value of `--data` as typed. */
  readonly dataFlag: string | undefined
  readonly metricsUrl: string | undefined
}

/**
 * Prints the URL, notes and settings of the service. Standard output has the lines that make `rushes run` in another
 * terminal use this service.
 */
export function announce({ out }: Context, announcement: Announcement): void {
  const { url, host, role, data, databaseUrl, apiKey, models, dataFlag, metricsUrl } = announcement
  const link = linkOf(announcement)
  const image = defaultDocument(models, 'image')?.name ?? ''
  const video = defaultDocument(models, 'video')?.name ?? ''
  if (out.mode.json) {
    out.json({
      url,
      role,
      data,
      ...(databaseUrl !== undefined && { database: nameOf(databaseUrl) }),
      ...(apiKey !== undefined && { api_key: apiKey }),
      models: { image, video },
      ...(link !== undefined && { console: link }),
      ...(metricsUrl !== undefined && { metrics_url: metricsUrl }),
    })
    return
  }
  const where = isOnAllAddresses(host) ? `all addresses of this machine, here ${url}` : url
  const headline = role === 'worker' ? `Rendering runs, health checks on ${where}` : `Listening on ${where}`
  out.note(`${headline}. Press Ctrl-C to stop.`)
  out.note(`Data in ${data}; it is kept when the service stops.`)
  if (databaseUrl !== undefined) out.note(`Database: ${nameOf(databaseUrl)}`)
  if (metricsUrl !== undefined) out.note(`Metrics on ${metricsUrl}`)
  if (role === 'worker') return
  if (role === 'api') out.note('This node renders nothing: start one with --role worker too.')
  out.note('To use it, run these lines in another terminal:')
  const variables = {
    RUSHES_BASE_URL: url,
    ...(apiKey !== undefined && { RUSHES_API_KEY: apiKey }),
    RUSHES_IMAGE_MODEL: image,
    RUSHES_VIDEO_MODEL: video,
  }
  for (const [name, value] of Object.entries(variables)) out.line(variableLine(name, value))
  if (models.length > KINDS.length)
    out.note(`These are the default models. To list all ${models.length}: \`rushes models --refresh\`.`)
  const dataWords = dataFlag === undefined ? '' : ` --data ${quoteWord(dataFlag)}`
  const admin = databaseUrl === undefined ? dataWords : ' --database <url>'
  for (const line of consoleLines(announcement, admin)) out.note(line)
  out.note(
    apiKey === undefined
      ? 'The API key (RUSHES_API_KEY) was shown on the first start. ' +
          `Create a new one with \`rushes admin key create --account default${admin}\`.`
      : 'The API key is shown only once. Then try `rushes run image "a fox"`.',
  )
}

const consoleBase = ({ url, publicUrl }: ConsoleAnnouncement): string => publicUrl ?? url

function linkOf(announcement: ConsoleAnnouncement): string | undefined {
  const { linkToken } = announcement.console ?? {}
  return linkToken === undefined ? undefined : `${consoleBase(announcement)}${linkPath(linkToken)}`
}

/** The lines about the console. `where`: the flags of `rushes admin` that select this service. */
export function consoleLines(announcement: ConsoleAnnouncement, where: string): readonly string[] {
  const { console: start } = announcement
  if (start === undefined) return []
  const link = linkOf(announcement)
  if (link !== undefined) return [`Console: ${link}`, 'Single-use sign-in link; expires in 15 minutes.']
  const base = consoleBase(announcement)
  const flags = base === DEFAULT_PUBLIC_URL ? where : `${where} --public-url ${quoteWord(base)}`
  return [
    `Console: ${base}/`,
    start.user !== undefined
      ? `To get a sign-in link: \`rushes admin user link ${quoteWord(start.user)}${flags}\`.`
      : `It has no users yet. To add one: \`rushes admin user add <email> --account default${flags}\`.`,
  ]
}
