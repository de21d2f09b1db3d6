/** The runs of the account, as a list or a grid. Its rows are live; older runs come on scrolling, or by a link. */
import { mediaTypeOf } from '../protocol/media.js'
import { LOCAL_STATUSES } from '../protocol/run-state.js'
import { cut, linkTo, plural } from './format.js'
import { hx } from './hx.js'
import { type Assets, Page } from './layout.js'
import { Badge, Icon, isUnderWay, type KeyChoice, Select, type ShownRun, Time } from './parts.js'

export type RunsLayout = 'list' | 'grid'

/** The fields of the URL. */
export interface RunsQuery {
  readonly status: string | undefined
  readonly model: string | undefined
  readonly key: string | undefined
  readonly search: string | undefined
}

export interface RunsView {
  readonly assets: Assets
  readonly query: RunsQuery
  readonly layout: RunsLayout
  readonly runs: readonly ShownRun[]
  /** Where the older runs begin. A page of a filter may have no runs, and older ones all the same. */
  readonly next: number | undefined
  readonly models: readonly string[]
  readonly keys: readonly KeyChoice[]
}

export const RunsPage = (props: RunsView) => (
  <Page
    assets={props.assets}
    title="Runs"
    path="/runs"
    actions={
      <>
        <div class="switch">
          {(['list', 'grid'] as const).map((each) => (
            <a
              key={each}
              href={linkTo('/runs', { ...props.query, view: each })}
              aria-label={`As a ${each}`}
              aria-current={each === props.layout ? 'true' : undefined}
            >
              <Icon name={each} />
            </a>
          ))}
        </div>
        <a class="button primary" href="/new">
          <Icon name="plus" /> New run
        </a>
      </>
    }
  >
    <Filters {...props} />
    <section id="found" aria-label="Runs">
      {props.runs.length === 0 && props.next === undefined ? (
        <p class="card empty">No runs{Object.values(props.query).some(Boolean) ? ' match' : ' yet'}.</p>
      ) : props.layout === 'list' ? (
        <List {...props} />
      ) : (
        <Grid {...props} />
      )}
      <Live {...props} />
    </section>
  </Page>
)

const Filters = ({ query, layout, models, keys }: RunsView) => (
  <form
    class="filters"
    role="search"
    action="/runs"
    {...hx({
      get: '/runs',
      trigger: ['input delay:250ms', 'submit'],
      target: '#found',
      select: '#found',
      swap: 'outerHTML',
      replaceUrl: true,
      sync: 'this:replace',
    })}
  >
    {layout === 'grid' && <input type="hidden" name="view" value="grid" />}
    <label class="search">
      <Icon name="search" />
      <input
        type="search"
        name="search"
        value={query.search}
        placeholder="Search in prompts"
        aria-label="Search in prompts"
      />
    </label>
    <Select
      name="status"
      label="Status"
      chosen={query.status}
      choices={[['', 'Any status'], ...LOCAL_STATUSES.map((each) => [each, each] as const)]}
    />
    <Select
      name="model"
      label="Model"
      chosen={query.model}
      choices={[['', 'Any model'], ...models.map((each) => [each, each] as const)]}
    />
    <Select
      name="key"
      label="API key"
      chosen={query.key}
      choices={[['', 'Any key'], ...keys.map(({ id, name }) => [String(id), name] as const)]}
    />
    <button type="submit" class="button unscripted">
      Show
    </button>
  </form>
)

const List = (props: RunsView) => (
  <table class="card runs">
    <thead>
      <tr>
        <th>Output</th>
        <th>Prompt</th>
        <th>Key</th>
        <th>Status</th>
        <th class="right">Created</th>
      </tr>
    </thead>
    <tbody id="runs">
      {props.runs.map((run) => (
        <Row key={run.id} run={run} />
      ))}
      {props.next !== undefined && (
        <tr class="more">
          <td colSpan={5}>
            <Older {...props} />
          </td>
        </tr>
      )}
    </tbody>
  </table>
)

const Grid = (props: RunsView) => (
  <ol class="tiles" id="runs">
    {props.runs.map((run) => (
      <Tile key={run.id} run={run} />
    ))}
    {props.next !== undefined && (
      <li class="more">
        <Older {...props} />
      </li>
    )}
  </ol>
)

/** Reached by scrolling, it is replaced by the next runs and the link to those after them. */
function Older({ query, layout, next }: RunsView) {
  const href = linkTo('/runs', { ...query, view: layout, before: next })
  return (
    <a
      class="button"
      href={href}
      {...hx({
        get: href,
        trigger: 'intersect',
        target: 'closest .more',
        select: '#runs > *',
        swap: 'outerHTML',
        sync: 'this:drop',
      })}
    >
      Older runs
    </a>
  )
}

interface ItemProps {
  readonly run: ShownRun
}

const Row = ({ run }: ItemProps) => (
  <tr id={run.id} class="run">
    <td class="output">
      <Thumbnail run={run} />
      <Following run={run} />
    </td>
    <td class="prompt">
      <RunLink run={run} />
      <small>
        <span>{run.model}</span>
        {run.status === 'failed' && <span class="bad">{run.failure?.message}</span>}
        {run.isRemoved && 'files deleted'}
      </small>
    </td>
    <td class="key">{run.key ?? 'Console'}</td>
    <td class="state">
      <Badge run={run} />
    </td>
    <td class="created">
      <Time ms={run.createdAtMs} />
    </td>
  </tr>
)

const Tile = ({ run }: ItemProps) => (
  <li id={run.id} class={run.ratio[0] < run.ratio[1] ? 'run tall' : 'run'}>
    <Thumbnail run={run} />
    <Following run={run} />
    <div class="caption">
      <RunLink run={run} />
      <div class="row">
        <Badge run={run} /> <Time ms={run.createdAtMs} />
      </div>
    </div>
  </li>
)

/** With an id: htmx gives the focus back to it when the row is replaced. */
const RunLink = ({ run }: { readonly run: ShownRun }) => (
  <a id={`link-${run.id}`} href={`/runs/${run.id}`}>
    <bdi>{cut(run.prompt.trim(), 300) || 'No prompt'}</bdi>
  </a>
)

/** Width and height are attributes: a strict policy has no `style`, and the row has its height before the picture came. */
function Thumbnail({ run }: { readonly run: ShownRun }) {
  const [output] = run.outputs
  const type = output && mediaTypeOf(output.contentType)
  const [width, height] = run.ratio.map((each) => each * 100)
  if (output === undefined || run.isRemoved || (type !== 'image' && type !== 'video'))
    return (
      <span class={`thumb ${run.status}`}>
        <svg
          class="shape"
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          aria-hidden="true"
        />
        <Icon name={run.kind} size={18} />
      </span>
    )
  return (
    <span class="thumb">
      {type === 'video' ? (
        <video
          src={output.url}
          muted
          preload="metadata"
          aria-hidden="true"
          tabIndex={-1}
          width={width}
          height={height}
        />
      ) : (
        <img src={`/runs/${run.id}/thumbnail`} alt="" loading="lazy" width={width} height={height} />
      )}
      {type === 'video' && (
        <span class="play">
          <Icon name="play" size={11} />
        </span>
      )}
    </span>
  )
}

/** Says in which state the page knows a run that can still change. The one that asks (`Live`) collects them. */
const Following = ({ run }: { readonly run: ShownRun }) =>
  isUnderWay(run) && <input type="hidden" name="at" value={`${run.id}.${run.version}`} />

/** One request for all rows. It answers 204 if nothing changed, else only the rows that did. */
const Live = ({ layout }: RunsView) => (
  <div
    {...hx({
      get: linkTo('/runs/live', { view: layout }),
      trigger: 'every 2s',
      include: '[name=at]',
      swap: 'none',
      sync: 'this:drop',
    })}
  />
)

export interface RunChanges extends Pick<RunsView, 'layout'> {
  readonly changed: readonly ShownRun[]
}

/** Parts that replace the rows of the page. */
export function LiveAnswer({ layout, changed }: RunChanges) {
  const Item = layout === 'list' ? Row : Tile
  const ended = changed.filter((run) => !isUnderWay(run))
  return (
    <>
      {changed.map((run) => (
        <hx-partial key={run.id} {...hx({ target: `#${run.id}`, swap: 'outerHTML' })}>
          <Item run={run} />
        </hx-partial>
      ))}
      {ended.length > 0 && (
        <hx-partial {...hx({ target: '#announcement', swap: 'textContent' })}>
          {`${plural(ended.length, 'run')} ended.`}
        </hx-partial>
      )}
    </>
  )
}
