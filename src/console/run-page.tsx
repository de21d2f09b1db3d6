/** One run: its outputs or what became of it, every field, and the commands that create it again. */
import type { ComponentChildren } from 'preact'
import { withoutData } from '../protocol/identity.js'
import { writeJson } from '../protocol/json.js'
import { isSentImage, mediaTypeOf } from '../protocol/media.js'
import { mediaParameters, mediaSources } from '../protocol/media-parameters.js'
import type { ModelDocument } from '../protocol/models.js'
import { capitalized } from '../protocol/text.js'
import { formatBytes } from '../protocol/units.js'
import { commandsOf } from './commands.js'
import { credits, cut, labelOf, plural } from './format.js'
import { hx } from './hx.js'
import { type Assets, Page } from './layout.js'
import {
  Badge,
  Icon,
  isUnderWay,
  Notice,
  PostButton,
  type ShownOutput,
  type ShownRun,
  Time,
} from './parts.js'

export interface RunView {
  readonly assets: Assets
  readonly run: ShownRun
  /** As it was sent, with the description of each file in place of its data: URL. Objects have their data: URLs. */
  readonly input: Readonly<Record<string, unknown>>
  /** Undefined if the service no longer has the model. */
  readonly document: ModelDocument | undefined
  readonly baseUrl: string
}

/** The part that is live, without what a whole page needs. */
export type StateView = Omit<RunView, 'assets'>

export function RunPage(props: RunView) {
  const { assets, run } = props
  return (
    <Page
      assets={assets}
      path="/runs"
      title={cut(run.prompt, 60)}
      heading={<bdi>{cut(run.prompt, 140) || 'No prompt'}</bdi>}
      actions={<Cancel run={run} />}
    >
      <State {...props} />
      <Commands {...props} />
    </Page>
  )
}

/** Outside the part that is replaced, so that it stays open. A run that is being stopped has its failure already. */
const Cancel = ({ run }: { readonly run: ShownRun }) =>
  isUnderWay(run) &&
  run.failure === undefined && (
    <details id="cancel" class="confirm">
      <summary class="button">Cancel</summary>
      <PostButton action={`/runs/${run.id}/cancel`} class="button danger">
        Really cancel
      </PostButton>
    </details>
  )

/** Everything that changes while the run is under way. It asks for itself until the run has ended. */
const State = (props: StateView) => {
  const { run } = props
  return (
    <section
      id="state"
      aria-label="Result"
      {...(isUnderWay(run) &&
        hx({ get: `/runs/${run.id}/state?version=${run.version}`, trigger: 'every 1s', swap: 'outerHTML' }))}
    >
      <div class="row meta">
        <Badge run={run} />
        <span>
          {capitalized(run.kind)} · {run.model}
        </span>
        <code>{run.id}</code>
      </div>
      <div class="columns">
        <Result run={run} />
        <Details {...props} />
      </div>
    </section>
  )
}

export const StateAnswer = (props: StateView) => (
  <>
    <State {...props} />
    {!isUnderWay(props.run) && (
      <>
        <hx-partial {...hx({ target: '#announcement', swap: 'textContent' })}>
          {`The run is now ${props.run.status}.`}
        </hx-partial>
        <hx-partial {...hx({ target: '#cancel', swap: 'outerHTML' })} />
      </>
    )}
  </>
)

function Result({ run }: { readonly run: ShownRun }) {
  const { status, failure, outputs } = run
  switch (status) {
    case 'queued':
      return <Waiting run={run} text="Waiting for its turn." />
    case 'processing':
      return <Waiting run={run} text={failure?.message ?? renderingText(run)} />
    case 'failed':
    case 'canceled':
      return (
        <Notice tone={status === 'failed' ? 'bad' : 'info'} title={capitalized(status)}>
          <p class="wrap">{failure?.message}</p>
          <code>{failure?.code}</code>
        </Notice>
      )
    case 'succeeded':
      if (run.isRemoved) return <Notice tone="info" title="The files of this run were deleted." />
      return (
        <div class="outputs">
          {outputs.map((output) => (
            <Output key={output.url} run={run} output={output} />
          ))}
        </div>
      )
  }
}

const renderingText = ({ queuePosition = 0 }: ShownRun): string =>
  queuePosition > 0
    ? `Waiting at the server of the model, with ${plural(queuePosition, 'job')} before it.`
    : 'Rendering.'

const Waiting = ({ run, text }: { readonly run: ShownRun; readonly text: string }) => (
  <div class="card empty waiting">
    <Icon name={run.kind} size={28} />
    <p>{text}</p>
    <progress aria-label="Progress" max={100} value={run.progress} />
    <p class="muted">Your result will appear here.</p>
  </div>
)

interface OutputProps {
  readonly run: ShownRun
  readonly output: ShownOutput
}

function Output({ run, output: { url, name, contentType, bytes, savedName } }: OutputProps) {
  const [width, height] = run.ratio.map((each) => each * 100)
  return (
    <figure class="card">
      {contentType.startsWith('image/') && (
        <a href={url}>
          <img src={url} alt={`Output: ${cut(run.prompt, 200)}`} width={width} height={height} />
        </a>
      )}
      {contentType.startsWith('video/') && (
        <video
          src={url}
          controls
          loop
          playsInline
          preload="metadata"
          aria-label="Output"
          width={width}
          height={height}
        />
      )}
      <figcaption>
        <span class="wrap">
          {name}
          <small>
            {contentType} · {formatBytes(bytes)}
          </small>
        </span>
        <a class="button small" href={url} download={savedName}>
          <Icon name="download" size={14} /> Download
        </a>
      </figcaption>
    </figure>
  )
}

function Details({ run, input: whole, document }: StateView) {
  const input = withoutData(whole) as StateView['input']
  const { prompt, ...others } = input
  const sent = mediaSources(input, mediaParameters(document?.input).keys()).map(({ value }) => value)
  return (
    <aside class="card details">
      <h2>Details</h2>
      <dl>
        {Object.entries(others).map(([name, value]) => (
          <Entry key={name} name={labelOf(name)}>
            <Value run={run} value={value} sent={sent} />
          </Entry>
        ))}
        <Entry name="Price">
          {credits(run.price)} {run.isRefunded && <small>refunded</small>}
        </Entry>
        <Entry name="API key">{run.key ?? 'Console'}</Entry>
        {MOMENTS.map(([name, field]) => {
          const { [field]: ms } = run
          return (
            ms !== undefined && (
              <Entry key={name} name={name}>
                <Time ms={ms} />
              </Entry>
            )
          )
        })}
      </dl>
      <h2>Prompt</h2>
      <p class="prompt wrap" tabIndex={0} role="region" aria-label="Prompt">
        <bdi>{String(prompt ?? '')}</bdi>
      </p>
    </aside>
  )
}

const MOMENTS = [
  ['Created', 'createdAtMs'],
  ['Started', 'startedAtMs'],
  ['Ended', 'finishedAtMs'],
] as const

interface ValueProps {
  readonly run: ShownRun
  readonly value: unknown
  /** The sources of the run, in their order. */
  readonly sent: readonly unknown[]
}
/** A file that was sent as data is a link to it, and an image a small picture. */
const Value = ({ run, value, sent }: ValueProps) => (
  <>
    {[value].flat().map((each: unknown, at) => {
      const url = `/runs/${run.id}/references/${sent.indexOf(each)}`
      return isSentImage(each) && sent.includes(each) ? (
        <a key={at} class="line" href={url}>
          {mediaTypeOf(each.content_type) === 'image' ? (
            <img class="sent" src={url} alt={`Image ${at + 1}`} height="48" />
          ) : (
            each.content_type
          )}
        </a>
      ) : (
        <span key={at} class="line">
          {typeof each === 'object' ? writeJson(each) : String(each)}
        </span>
      )
    })}
  </>
)

const Entry = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd class="wrap">{children}</dd>
  </div>
)

const Commands = ({ run, input, document, baseUrl }: StateView) => (
  <section class="card commands">
    <h2>Create it again</h2>
    {commandsOf({ ...run, input }, baseUrl, document).map(({ name, code }, at) => (
      <details key={name} name="commands" open={at === 0}>
        <summary>{name}</summary>
        <pre tabIndex={0} role="region" aria-label={`Command for ${name}`}>
          <code>{code}</code>
        </pre>
      </details>
    ))}
  </section>
)
