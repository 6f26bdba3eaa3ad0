import { describe, expect, it } from 'vitest';
import { blocks, inline } from './markdown';

describe('Markdown', () => {
  it('has headings, paragraphs, lists, code, quotes and rules', () => {
    const kinds = blocks('# A\n\ntext\nmore\n\n- one\n- two\n  still two\n\n1. first\n\n```py\n# no heading\n\nx\n```\n\n> said\n\n---\n').map(({ kind }) => kind);
    expect(kinds).toEqual(['heading', 'paragraph', 'list', 'list', 'code', 'quote', 'rule']);
    expect(blocks('```\n# no heading\n```')).toEqual([{ kind: 'code', text: '# no heading' }]);
    expect(blocks('- a\n- b\n  c')).toEqual([{ kind: 'list', ordered: false, start: 1, items: [inline('a'), inline('b c')] }]);
  });

  it('takes code out of a list, without its indentation, and counts on after it', () => {
    expect(blocks('1. Load\n   ```sh\n   mkdir a\n     cd a\n   ```\n2. Run\n\n- x\n\n    ```\n    y\n    ```')).toEqual([
      { kind: 'list', ordered: true, start: 1, items: [inline('Load')] },
      { kind: 'code', text: 'mkdir a\n  cd a' },
      { kind: 'list', ordered: true, start: 2, items: [inline('Run')] },
      { kind: 'list', ordered: false, start: 1, items: [inline('x')] },
      { kind: 'code', text: 'y' },
    ]);
    expect(blocks('```DATA``` is a path')).toEqual([{ kind: 'paragraph', parts: [{ kind: 'code', text: 'DATA' }, { kind: 'text', text: ' is a path' }] }]);
  });

  it('has tables, whose lines may lack cells', () => {
    expect(blocks('Sizes:\n| a | b \\| c |\n|---|:-:|\n| 1 | `2` | 3 |\n| 4 |\n\nend')).toEqual([
      { kind: 'paragraph', parts: inline('Sizes:') },
      { kind: 'table', head: [inline('a'), inline('b \\| c')], rows: [[inline('1'), inline('`2`')], [inline('4')]] },
      { kind: 'paragraph', parts: inline('end') },
    ]);
    expect(inline('b \\| c').map((each) => 'text' in each && each.text)).toEqual(['b ', '|', ' c']);
    expect(blocks('a | b\nno table').map(({ kind }) => kind)).toEqual(['paragraph']);
  });

  it('takes signs after a backslash as they are, and breaks lines', () => {
    expect(inline('\\<TBD> \\*a\\*<br>b')).toEqual([
      { kind: 'text', text: '<' },
      { kind: 'text', text: 'TBD> ' },
      { kind: 'text', text: '*' },
      { kind: 'text', text: 'a' },
      { kind: 'text', text: '*' },
      { kind: 'break' },
      { kind: 'text', text: 'b' },
    ]);
  });

  it('knows emphasis, code, links and pictures within a line', () => {
    expect(inline('a **b `c`** _d_ snake_case_name')).toEqual([
      { kind: 'text', text: 'a ' },
      { kind: 'strong', parts: [{ kind: 'text', text: 'b ' }, { kind: 'code', text: 'c' }] },
      { kind: 'text', text: ' ' },
      { kind: 'em', parts: [{ kind: 'text', text: 'd' }] },
      { kind: 'text', text: ' snake_case_name' },
    ]);
    expect(inline('[docs](https://example.org "title")')).toEqual([{ kind: 'link', address: 'https://example.org', parts: [{ kind: 'text', text: 'docs' }] }]);
    expect(inline('<img alt="Loss" src="loss.png" width=3>')).toEqual([{ kind: 'picture', address: 'loss.png', text: 'Loss' }]);
  });

  it('makes no link of a script, and leaves HTML as text', () => {
    expect(inline('[click](javascript:alert(1))')).toEqual([{ kind: 'text', text: 'click' }, { kind: 'text', text: ')' }]);
    expect(inline('<script>x</script>')).toEqual([{ kind: 'text', text: '<script>x</script>' }]);
  });

  it.each([
    ['stars', '*'.repeat(50_000)],
    ['brackets', `${'['.repeat(3_999)}\n\n`.repeat(25)],
    ['links', `${'[a](b '.repeat(660)}\n\n`.repeat(25)],
    ['pictures', `${'![a](b'.repeat(660)}\n\n`.repeat(25)],
    ['emphasis', `${'**a *b '.repeat(570)}\n\n`.repeat(25)],
    ['spaces in a heading', `# x${' '.repeat(90_000)}x`],
    ['marks of a heading', '# '.repeat(45_000)],
    ['tags', '<img '.repeat(20_000)],
    ['quotes', '>'.repeat(90_000)],
    ['cells', `${'|'.repeat(40_000)}\n${'|-'.repeat(20_000)}`],
    ['rows', `|a\n|-\n${'|\n'.repeat(45_000)}`],
    ['lines that may begin a table', '|a\n'.repeat(33_000)],
    ['spaces of a fence', `${' '.repeat(90_000)}x`],
    ['backquotes', `${'`'.repeat(3_999)}\n\n`.repeat(25)],
  ])('reads a hostile text of %s to its end', (_, text) => {
    expect(blocks(text).length).toBeGreaterThan(0);
  }, 20_000);

  it('leaves out the marks that close a heading', () => {
    expect(blocks('## a b ##')).toEqual([{ kind: 'heading', level: 2, parts: inline('a b') }]);
    expect(blocks('# C#')).toEqual([{ kind: 'heading', level: 1, parts: inline('C#') }]);
  });
});
