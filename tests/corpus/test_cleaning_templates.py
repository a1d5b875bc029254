from __future__ import annotations

from corpus.cleaning import Template, build_template, clean_page, profile_page

BAND = "<div class='q7'><p>Acme Example keeps a catalogue of many products for its dealers.</p></div>"
LINKS = "<div class='q8'><a href='/a'>Our offices</a> <span>and</span> <a href='/b'>Our people</a></div>"


def _page(name: str, cas: str, point: int) -> bytes:
    return f"""<html><head><title>{name}</title></head><body>{BAND}<div class='z'><h1>{name}</h1>
    <p>{name} is a liquid that the {name} sheet describes in its own words here.</p>
    <table><tr><td>CAS</td><td>{cas}</td></tr><tr><td>Signal word</td><td>Danger</td></tr></table>
    <h2>First aid measures</h2><p>Wash hands thoroughly after handling the product.</p>
    <p>Its flash point is {point} °C, measured on {name}.</p></div>{LINKS}
    <div class='q9'><p>The quality policy of Acme Example is known to all of its dealers.</p></div></body></html>""".encode()


PAGES = [
    _page("Benzene", "71-43-2", -11),
    _page("Toluene", "108-88-3", 4),
    _page("Acetone", "67-64-1", -20),
    _page("Phenol", "108-95-2", 79),
]


def _template() -> Template:
    return build_template([profile_page(page) for page in PAGES])


def test_repeated_furniture_goes_and_standard_phrases_stay() -> None:
    before = clean_page(PAGES[0]).text
    after = clean_page(PAGES[0], template=_template())
    assert "catalogue of many products" in before
    assert "catalogue of many products" not in after.text
    assert "quality policy" not in after.text
    assert after.removed["structural"]["template"] >= 2
    for kept in (
        "71-43-2",
        "| Signal word | Danger |",
        "## First aid measures",
        "Wash hands thoroughly",
        "-11 °C",
    ):
        assert kept in after.text


def test_fewer_than_three_pages_make_no_template() -> None:
    assert not build_template([profile_page(page) for page in PAGES[:2]])


def test_template_is_data_and_its_hash_follows_its_blocks() -> None:
    template = _template()
    assert Template.from_json(template.to_json()) == template
    assert build_template([profile_page(page) for page in reversed(PAGES)]).hash() == template.hash()
    assert Template().hash() != template.hash()


def test_profiles_tell_skins_apart() -> None:
    other = (
        PAGES[0]
        .replace(b"<body>", b"<body><main id='page'><header id='head'>x</header>")
        .replace(b"</body>", b"</main></body>")
    )
    one, same, skin = profile_page(PAGES[0]), profile_page(PAGES[1]), profile_page(other)
    assert one.skin == same.skin != skin.skin
    assert one.blocks == tuple(sorted(set(one.blocks)))
